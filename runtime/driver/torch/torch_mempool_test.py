"""Tollens in torch.cuda.MemPool, beside PyTorch's own allocator: a separate process, because
an allocator is chosen once. The properties of PyTorch's TestMemPool.

    python3 runtime/driver/torch/torch_mempool_test.py
"""

import gc
import os
import threading
import unittest

os.environ.setdefault("TOLLENS_TORCH_LIMIT", "400m")

import torch  # noqa: E402
from torch_scene import (  # noqa: E402
    MIB, block, holds, need_device, need_kernels, number, pattern, torch_memory)


def setUpModule() -> None:
    need_device()
    if not hasattr(torch.cuda, "MemPool"):
        raise unittest.SkipTest("this PyTorch has no MemPool")


def new_pool() -> "torch.cuda.MemPool":
    return torch.cuda.MemPool(torch_memory.allocator().allocator())


class Pools(unittest.TestCase):
    def tearDown(self) -> None:
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.assertEqual(number("allocated"), 0, "segments are left")

    def test_only_what_is_allocated_inside_comes_from_tollens(self) -> None:
        pool = new_pool()
        outside = block(30 * MIB)
        self.assertEqual(number("allocated"), 0)
        with torch.cuda.use_mem_pool(pool):
            inside = block(30 * MIB)
        self.assertGreaterEqual(number("allocated"), 30 * MIB)
        after = block(30 * MIB)
        self.assertLess(number("allocated"), 60 * MIB)
        for value, tensor in enumerate((outside, inside, after)):
            tensor.copy_(pattern(30 * MIB, value))
        for value, tensor in enumerate((outside, inside, after)):
            self.assertTrue(holds(tensor, value))
        del pool

    def test_a_pools_memory_goes_back_when_it_ends(self) -> None:
        pool = new_pool()
        with torch.cuda.use_mem_pool(pool):
            tensor = block(20 * MIB)
        del tensor
        self.assertGreater(number("allocated"), 0, "PyTorch keeps the segment")
        del pool

    def test_out_of_memory_is_pytorchs_own(self) -> None:
        pool = new_pool()
        with torch.cuda.use_mem_pool(pool):
            held = block(300 * MIB)
            with self.assertRaises(torch.OutOfMemoryError):
                block(300 * MIB)
            small = block(50 * MIB)
        small.copy_(pattern(50 * MIB, 4))
        self.assertTrue(holds(small, 4))
        del held, small, pool

    def test_two_pools_are_apart(self) -> None:
        first, second = new_pool(), new_pool()
        with torch.cuda.use_mem_pool(first):
            one = block(3 * MIB)
        with torch.cuda.use_mem_pool(second):
            two = block(3 * MIB)
        one.copy_(pattern(3 * MIB, 1))
        two.copy_(pattern(3 * MIB, 2))
        self.assertTrue(holds(one, 1) and holds(two, 2))
        self.assertNotEqual(first.id, second.id)
        del one, two, first, second

    def test_pools_nest(self) -> None:
        outer, inner = new_pool(), new_pool()
        with torch.cuda.use_mem_pool(outer):
            one = block(3 * MIB)
            with torch.cuda.use_mem_pool(inner):
                two = block(3 * MIB)
            three = block(3 * MIB)
        self.assertEqual(len({t.data_ptr() for t in (one, two, three)}), 3)
        self.assertGreaterEqual(number("allocated"), 9 * MIB)
        del one, two, three, outer, inner

    def test_threads_have_pools_of_their_own(self) -> None:
        failures: list[int] = []

        # PyTorch 2.11 does not let a pool end while another thread allocates from one.
        pools = [new_pool() for _ in range(4)]

        def work(value: int) -> None:
            with torch.cuda.use_mem_pool(pools[value]):
                for i in range(20):
                    mine = block(MIB + i)
                    mine.copy_(pattern(mine.numel(), value))
                    if not holds(mine, value):
                        failures.append(value)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_captured_graph_can_use_one(self) -> None:
        need_kernels()
        pool, graph = new_pool(), torch.cuda.CUDAGraph()
        x = torch.ones(MIB, device="cuda")
        with torch.cuda.graph(graph, pool=pool.id):
            y = x * 2 + 1
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(y.sum().item(), 3.0 * MIB)
        del y, graph, pool


if __name__ == "__main__":
    unittest.main(verbosity=2)
