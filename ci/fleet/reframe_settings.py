"""ReFrame's settings for the tests of ci/fleet: this machine, alone and as the nodes that
ci/fleet/cluster starts. A site has its own; what matters here are the features."""

site_configuration = {
    "systems": [{
        "name": "here",
        "descr": "one machine",
        "hostnames": [".*"],
        "partitions": [
            {"name": "alone", "scheduler": "local", "launcher": "local", "environs": ["builtin"],
             "features": ["soft"], "max_jobs": 2},
            {"name": "cluster", "scheduler": "squeue", "launcher": "local",
             "environs": ["builtin"], "features": ["soft"], "max_jobs": 4,
             "access": ["--gres=gpu:1"]},
        ]}],
    "general": [{"check_search_recursive": False, "report_junit": "",
                 "remote_detect": False}],
    "logging": [{"handlers": [{"type": "stream", "name": "stdout", "level": "info",
                               "format": "%(message)s"}],
                 "handlers_perflog": [{"type": "filelog", "prefix": "%(check_system)s",
                                       "level": "info", "format": "%(check_result)s|%(check_#ALL)s",
                                       "append": True}]}],
}
