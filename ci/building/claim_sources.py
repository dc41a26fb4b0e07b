"""The sources of plugins: claims that need more than the harness has."""

from building.sources import within

# The claims on the worker: a plugin, since what they need is not in the harness.
WORKER_CLAIMS = within({
    "worker": """
        worker_claims worker_faults worker_stage w1_decode_is_llama_cpps
        w1_tokenizer_is_llama_cpps w2_same_seed_same_tokens w2_long_prompts
        w3_health_tells_the_truth
    """,
})

# The claim on devices that use each other's memory: a plugin, since it is about two devices.
PEER_CLAIMS = within({
    "peers": """
        peer_claims peer_faults peer_driver peer_pattern peer_stage peer_ways peer_message
        peer_child peer_shared p1_every_pair p1_at_once p1_processes p1_exports p2_speed
    """,
})
# Its other process shares these with it.
PEER_PROCESS = within({"peers": "peer_driver peer_pattern peer_message"})
