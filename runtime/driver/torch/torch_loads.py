"""The loads of the bench: each takes steps whose shapes differ, from a seed, so that all allocators
get the same ones.

scale: 1 is the usual size; the bench raises it until memory is out. device: "cuda", or "meta" for
the shapes alone.
"""

import math
import random
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

AMP = torch.bfloat16


class Layer(nn.Module):
    """One layer of a decoder: attention and a gated product, each after a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 8 * width // 3 // 64 * 64 * 2, bias=False)
        self.down = nn.Linear(8 * width // 3 // 64 * 64, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(
            batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, value = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


class Decoder(nn.Module):
    def __init__(self, words: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def transformer(device: str, scale: float, seed: int) -> Callable[[], None]:
    """Trains a decoder of 110 million weights; the length of the texts varies from step to step."""
    draw = random.Random(seed)
    words, batch = 16000, 16
    with torch.device(device):
        model = Decoder(words, 768, 12, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        length = max(8, int(draw.randint(96, 768) * scale))
        tokens = torch.zeros(batch, length + 1, dtype=torch.long, device=device)
        with torch.autocast("cuda", dtype=AMP, enabled=device == "cuda"):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        del logits
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


class Bottleneck(nn.Module):
    """A block of ResNet-50: He et al., "Deep Residual Learning for Image Recognition", 2015."""

    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.main = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity() if inner == out and stride == 1 else nn.Sequential(
            nn.Conv2d(inner, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.main(x) + self.short(x))


def resnet50() -> nn.Module:
    parts: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
                              nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(count):
            parts.append(Bottleneck(inner, width, stride if i == 0 else 1))
            inner = 4 * width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


def resnet(device: str, scale: float, seed: int) -> Callable[[], None]:
    """Trains ResNet-50; the number of images and their size vary from step to step."""
    draw = random.Random(seed)
    with torch.device(device):
        model = resnet50().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        batch = max(1, int(draw.randint(24, 96) * scale))
        edge = draw.choice((160, 192, 224, 256))
        images = torch.zeros(batch, 3, edge, edge, device=device)
        images = images.to(memory_format=torch.channels_last)
        labels = torch.zeros(batch, dtype=torch.long, device=device)
        with torch.autocast("cuda", dtype=AMP, enabled=device == "cuda"):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def kv_cache(device: str, scale: float, seed: int) -> Callable[[], None]:
    """Serves requests: each keeps keys and values of 24 layers, which grow by copying to a larger
    block, and ends at a different length; a step adds a token to each, and sometimes a prompt
    comes in."""
    draw = random.Random(seed)
    layers, heads, width, grow = 24, 8, 128, 64
    most = max(1, int(48 * scale))
    requests: list[dict] = []

    def room(tokens: int) -> int:
        return math.ceil(tokens / grow) * grow

    def begin() -> None:
        length = int(math.exp(draw.uniform(math.log(64), math.log(3000))))
        requests.append({"length": length, "end": length + draw.randint(16, 700), "cache": [
            torch.zeros(2, heads, room(length), width, dtype=AMP, device=device)
            for _ in range(layers)]})

    def extend(request: dict) -> None:
        request["length"] += 8  # a step represents eight tokens
        if request["length"] <= request["cache"][0].shape[2]:
            return
        for i, old in enumerate(request["cache"]):
            new = torch.zeros(2, heads, room(request["length"]), width, dtype=AMP, device=device)
            new[:, :, :old.shape[2]].copy_(old)
            request["cache"][i] = new

    def step() -> None:
        while len(requests) < most:
            begin()
        for request in requests:
            extend(request)
            keys, values = request["cache"][0]
            query = torch.zeros(heads, 1, width, dtype=AMP, device=device)
            F.scaled_dot_product_attention(query, keys, values)
        requests[:] = [request for request in requests if request["length"] < request["end"]]

    return step


LOADS: dict[str, Callable[[str, float, int], Callable[[], None]]] = {
    "transformer": transformer, "resnet": resnet, "kv_cache": kv_cache}
