"""Tollens as the allocator of a whole process: the properties of PyTorch's own allocator tests that
apply to a plugged-in one, with PyTorch.

    python3 runtime/driver/torch/torch_use_test.py               on a GPU
    build/tollens soft -- python3 runtime/driver/torch/torch_use_test.py
"""

import gc
import os
import threading
import unittest

os.environ.setdefault("TOLLENS_TORCH_LIMIT", "2g")

import torch  # noqa: E402
from torch_scene import (  # noqa: E402
    MIB, block, holds, need_device, need_kernels, number, pattern, torch_memory, write_long)


def setUpModule() -> None:
    need_device()
    torch_memory.use()


class Blocks(unittest.TestCase):
    """TestCuda.test_memory_allocation, test_cuda_memory_leak_detection and similar tests."""

    def setUp(self) -> None:
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        self.before = number("allocated")

    def tearDown(self) -> None:
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        self.assertEqual(number("allocated"), self.before, "blocks are left")

    def test_what_is_allocated_is_counted_and_comes_back(self) -> None:
        sizes = [1, 511, 512, 513, 5 * MIB, 37 * MIB]
        blocks = [block(size) for size in sizes]
        self.assertEqual(number("allocated") - self.before, sum(sizes))
        self.assertGreaterEqual(number("reserved"), number("allocated"))
        self.assertEqual(len({b.data_ptr() for b in blocks}), len(sizes))
        for b in blocks:
            self.assertEqual(b.data_ptr() % 256, 0)

    def test_an_empty_tensor_needs_nothing(self) -> None:
        nothing = block(0)
        self.assertEqual((nothing.numel(), number("allocated")), (0, self.before))

    def test_contents_stay_apart(self) -> None:
        blocks = [block(1000 + 77 * i) for i in range(100)]
        for i, b in enumerate(blocks):
            b.copy_(pattern(b.numel(), i))
        for i, b in enumerate(blocks):
            self.assertTrue(holds(b, i), i)

    def test_empty_cache_gives_all_back(self) -> None:
        large = block(200 * MIB)
        held = number("reserved")
        del large
        self.assertEqual(number("reserved"), held)
        torch.cuda.empty_cache()
        self.assertLess(number("reserved"), held - 190 * MIB)

    def test_resizing_a_storage_frees_the_old_one(self) -> None:
        need_kernels()
        tensor = torch.zeros(MIB, device="cuda")
        tensor.untyped_storage().resize_(0)
        self.assertEqual(number("allocated"), self.before)

    def test_a_view_keeps_its_block(self) -> None:
        whole = block(3 * MIB)
        whole.copy_(pattern(3 * MIB, 7))
        part = whole[MIB:MIB + 100]
        del whole
        gc.collect()
        other = block(3 * MIB)
        other.copy_(pattern(3 * MIB, 8))
        self.assertTrue(holds(part, 7))

    def test_threads_allocate_at_once(self) -> None:
        failures: list[str] = []

        def work(value: int) -> None:
            with torch.cuda.stream(torch.cuda.Stream()):
                for i in range(60):
                    mine = block(1 + (i * 7919) % 300000)
                    mine.copy_(pattern(mine.numel(), value))
                    if not holds(mine, value):
                        failures.append(f"thread {value}, step {i}")

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Statistics(unittest.TestCase):
    def test_pytorchs_own_functions_answer(self) -> None:
        kept, before = block(3 * MIB), number("allocated")
        torch.cuda.reset_peak_memory_stats("cuda:0")
        self.assertEqual(torch.cuda.max_memory_allocated(), before)
        del kept
        block(50 * MIB)
        self.assertEqual(torch.cuda.memory_allocated("cuda"), before - 3 * MIB)
        self.assertEqual(torch.cuda.max_memory_allocated(0), before + 47 * MIB)
        self.assertEqual(torch.cuda.memory_reserved(torch.device("cuda:0")), number("reserved"))
        self.assertEqual(torch.cuda.max_memory_reserved(), number("reserved_peak"))
        self.assertIn("Allocated memory", torch.cuda.memory_summary())


class OutOfMemory(unittest.TestCase):
    """test_out_of_memory, test_out_of_memory_retry, test_set_per_process_memory_fraction."""

    def test_the_error_is_pytorchs_own_and_says_why(self) -> None:
        with self.assertRaisesRegex(torch.OutOfMemoryError, "CUDA out of memory: .* limit") as seen:
            block(3000 * MIB)
        self.assertIn("on device 0", str(seen.exception))
        self.assertTrue(holds_after_write(block(5 * MIB)))

    def test_what_cannot_be_counted_is_out_of_memory_too(self) -> None:
        with self.assertRaises(torch.OutOfMemoryError):
            block((1 << 62) - 1)

    def test_freeing_lets_the_next_one_fit(self) -> None:
        held = [block(400 * MIB) for _ in range(4)]
        with self.assertRaises(torch.OutOfMemoryError):
            block(600 * MIB)
        del held[1]
        del held[0]
        self.assertTrue(holds_after_write(block(600 * MIB)[:1000]))

    def test_many_errors_leave_nothing_behind(self) -> None:
        before = number("allocated")
        for _ in range(50):
            with self.assertRaises(torch.OutOfMemoryError):
                block(5000 * MIB)
        self.assertEqual(number("allocated"), before)


def holds_after_write(tensor: torch.Tensor) -> bool:
    tensor.copy_(pattern(tensor.numel(), 9))
    return holds(tensor, 9)


class Streams(unittest.TestCase):
    """test_record_stream, test_record_stream_on_shifted_view,
    test_caching_allocator_record_stream_oom, and reuse within and across streams."""

    def test_a_stream_reuses_its_own_at_once(self) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            first = block(3 * MIB)
            keep = write_long(first, 1)
            place = first.data_ptr()
            del first
            second = block(3 * MIB)
            self.assertEqual(second.data_ptr(), place)
            second.copy_(pattern(3 * MIB, 2))
            self.assertTrue(holds(second, 2))
        del keep

    def test_a_recorded_block_is_not_reused_early(self) -> None:
        self.record(lambda tensor, stream: tensor.record_stream(stream))

    def test_recording_a_view_counts_for_the_block(self) -> None:
        self.record(lambda tensor, stream: tensor[1000:].record_stream(stream))

    def record(self, record: object) -> None:
        stream = torch.cuda.Stream()
        for trial in range(20):
            tensor = block(2 * MIB)
            target = block(2 * MIB)
            tensor.copy_(pattern(2 * MIB, 5))
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(40):
                    target.copy_(tensor, non_blocking=True)
            record(tensor, stream)  # type: ignore[operator]
            del tensor
            other = block(2 * MIB)  # on the current stream, which has no work
            other.copy_(pattern(2 * MIB, 6), non_blocking=True)
            torch.cuda.current_stream().synchronize()
            stream.synchronize()
            self.assertTrue(holds(target, 5), trial)
            self.assertTrue(holds(other, 6), trial)

    def test_a_recorded_block_comes_back_when_the_stream_is_done(self) -> None:
        stream = torch.cuda.Stream()
        before = number("allocated")
        tensor = block(MIB)
        tensor.record_stream(stream)
        del tensor
        torch.cuda.synchronize()
        block(512)
        self.assertEqual((number("waiting"), number("allocated")), (0, before))

    def test_recorded_blocks_are_waited_for_before_memory_is_out(self) -> None:
        torch.cuda.empty_cache()
        stream = torch.cuda.Stream()
        for value in range(8):
            large = block(1300 * MIB)
            with torch.cuda.stream(stream):
                write_long(large[:MIB], value, 20)
            large.record_stream(stream)
            del large
        torch.cuda.synchronize()

    def test_another_stream_gets_what_was_freed_in_order(self) -> None:
        one, two = torch.cuda.Stream(), torch.cuda.Stream()
        for trial in range(10):
            with torch.cuda.stream(one):
                first = block(1300 * MIB)
                keep = write_long(first[:MIB], 1)
                del first
            with torch.cuda.stream(two):
                second = block(1300 * MIB)
                second[:MIB].copy_(pattern(MIB, 2), non_blocking=True)
                two.synchronize()
                one.synchronize()
                self.assertTrue(holds(second[:MIB], 2), trial)
            del second, keep


class Devices(unittest.TestCase):
    """test_current_device_after_free and multi-GPU tests."""

    def test_each_device_has_its_own(self) -> None:
        if torch.cuda.device_count() < 2:
            self.skipTest("there is one device")
        before = [number("allocated", device) for device in (0, 1)]
        one, two = block(MIB, 0), block(3 * MIB, 1)
        self.assertEqual(torch.cuda.current_device(), 0)
        self.assertEqual(number("allocated", 0) - before[0], MIB)
        self.assertEqual(number("allocated", 1) - before[1], 3 * MIB)
        two.copy_(pattern(3 * MIB, 3))
        one.copy_(two[:MIB])
        del two
        self.assertEqual(torch.cuda.current_device(), 0)
        self.assertTrue(holds(one, 3))


if __name__ == "__main__":
    unittest.main(verbosity=2)
