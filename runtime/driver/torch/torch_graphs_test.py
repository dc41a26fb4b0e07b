"""Training, and CUDA graphs, with Tollens as the allocator of the process: the properties of
PyTorch's test_graph_* tests. Needs a device that runs PyTorch's kernels.

    python3 runtime/driver/torch/torch_graphs_test.py
"""

import gc
import threading
import unittest

import torch
from torch_scene import MIB, need_device, need_kernels, number, torch_memory


def setUpModule() -> None:
    need_device()
    torch_memory.use()
    need_kernels()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.ones(1, device="cuda")
    except RuntimeError as error:
        if "does not yet support" in str(error):
            raise unittest.SkipTest(f"PyTorch {torch.__version__} captures no graphs with a "
                                    f"plugged-in allocator: {error}") from error
        raise


def capture(work: object, **options: object) -> tuple["torch.cuda.CUDAGraph", torch.Tensor]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):  # type: ignore[arg-type]
        result = work()  # type: ignore[operator]
    return graph, result


class Programs(unittest.TestCase):
    """Programs: a training step gives the same numbers as before, and its memory is released."""

    def test_training_learns_and_leaves_nothing(self) -> None:
        before = number("allocated")
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.GELU(),
                                    torch.nn.Linear(512, 1)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses = []
        for step in range(60):
            x = torch.randn(32 + step % 7, 64, device="cuda")
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)
        del model, optimizer, x, loss
        gc.collect()
        torch.cuda.synchronize()
        self.assertLess(number("allocated") - before, 80 * MIB, "cuBLAS keeps its workspaces")


class Graphs(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.arange(MIB, dtype=torch.float32, device="cuda")

    def tearDown(self) -> None:
        del self.x
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def chain(self) -> torch.Tensor:
        y = self.x
        for _ in range(20):
            y = (y + 1).sin()  # what lies between is freed in the capture
        return y

    def test_a_replay_gives_what_was_captured(self) -> None:
        expected = self.chain()
        graph, result = capture(self.chain)
        graph.replay()
        self.assertTrue(torch.equal(result, expected))
        self.x.add_(5)
        graph.replay()
        self.assertTrue(torch.equal(result, self.chain()))

    def test_a_replay_leaves_others_memory_alone(self) -> None:
        graph, _ = capture(self.chain)
        others = [torch.full((MIB,), float(i), device="cuda") for i in range(30)]
        for _ in range(5):
            graph.replay()
        torch.cuda.synchronize()
        for i, other in enumerate(others):
            self.assertTrue(bool((other == i).all()), i)

    def test_temporaries_of_a_capture_share_memory(self) -> None:
        before = number("graph_reserved")
        graph, _ = capture(self.chain)
        self.assertLess(number("graph_reserved") - before, 45 * MIB, "40 blocks of 4 MiB")
        del graph

    def test_two_graphs_share_a_pool(self) -> None:
        first, one = capture(lambda: self.x + 1)
        second, two = capture(lambda: self.x + 2, pool=first.pool())
        for _ in range(3):
            first.replay()
            second.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(one, self.x + 1))
        self.assertTrue(torch.equal(two, self.x + 2))

    def test_a_result_outlives_its_graph(self) -> None:
        graph, result = capture(lambda: self.x * 3)
        graph.replay()
        torch.cuda.synchronize()
        graph.reset()
        del graph
        torch.cuda.empty_cache()
        others = [torch.zeros(MIB, device="cuda") for _ in range(10)]
        self.assertTrue(torch.equal(result, self.x * 3))
        del others, result
        gc.collect()
        torch.cuda.empty_cache()
        self.assertEqual(number("graph_allocated"), 0)

    def test_memory_goes_back_with_the_last_graph(self) -> None:
        before = number("graph_reserved")
        graph, result = capture(self.chain)
        graph.replay()
        torch.cuda.synchronize()
        self.assertGreater(number("graph_reserved"), before)
        del result
        graph.reset()
        del graph
        gc.collect()
        torch.cuda.empty_cache()
        self.assertEqual(number("graph_reserved"), before)

    def test_side_streams_in_a_capture(self) -> None:
        side = torch.cuda.Stream()

        def work() -> torch.Tensor:
            y = self.x * 2
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                z = y + 1
                y.record_stream(side)
            del y
            w = self.x * 5
            torch.cuda.current_stream().wait_stream(side)
            return z + w

        graph, result = capture(work)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(result, self.x * 2 + 1 + self.x * 5))

    def test_another_thread_allocates_during_a_capture(self) -> None:
        failures: list[str] = []
        ready, done = threading.Event(), threading.Event()

        def allocate() -> None:
            ready.wait(30)
            try:
                held = [torch.empty(i * MIB, dtype=torch.uint8, device="cuda")
                        for i in range(1, 40)]
                del held
            except RuntimeError as error:
                failures.append(str(error))
            done.set()

        def work() -> torch.Tensor:
            ready.set()
            done.wait(30)
            return self.chain()

        thread = threading.Thread(target=allocate)
        thread.start()
        graph, result = capture(work)
        thread.join()
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(failures, [])
        self.assertTrue(torch.equal(result, self.chain()))

    def test_a_training_step_with_backward(self) -> None:
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(),
                                    torch.nn.Linear(64, 1)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        x, y = torch.randn(128, 64, device="cuda"), torch.randn(128, 1, device="cuda")
        stream = torch.cuda.Stream()

        def step() -> torch.Tensor:
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                first = step().item()
        torch.cuda.current_stream().wait_stream(stream)
        graph, loss = capture(step)
        for _ in range(100):
            graph.replay()
        torch.cuda.synchronize()
        self.assertLess(loss.item(), first)


if __name__ == "__main__":
    unittest.main(verbosity=2)
