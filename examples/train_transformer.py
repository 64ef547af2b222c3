"""Trains a small transformer on random tokens, to try `ncuroof profile` on; runs on a GPU, or on the CPU if there is none.

    python examples/train_transformer.py --steps 12
    ncuroof profile --step 10 --annotate examples/train_transformer.py

The first steps warm up (memory is allocated, libraries choose their kernels); the tenth is representative of later ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomTokens(Dataset[torch.Tensor]):
    """Sequences of random tokens."""

    def __init__(self, n_sequences: int, n_tokens: int, n_words: int) -> None:
        self._tokens = torch.randint(n_words, (n_sequences, n_tokens + 1), generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._tokens[index]


class LanguageModel(nn.Module):
    """Embedding, transformer layers with a causal mask, and a head."""

    def __init__(self, n_words: int, width: int, n_layers: int, n_heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, width)
        layer = nn.TransformerEncoderLayer(width, n_heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, n_words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of the next word, (sequence, token, word)."""
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.embedding(tokens), mask=mask, is_causal=True))


def batches(loader: DataLoader[torch.Tensor], n_steps: int) -> Iterator[torch.Tensor]:
    """Yield `n_steps` batches, starting over when the data ends."""
    while True:
        for batch in loader:
            if n_steps == 0:
                return
            n_steps -= 1
            yield batch


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> torch.Tensor:
    """Run forward, backward and optimizer once; return the loss."""
    optimizer.zero_grad(set_to_none=True)
    device = batch.device.type
    with torch.autocast(device, dtype=torch.bfloat16):
        scores = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1).float(), batch[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def main() -> None:
    """Train for a few steps and print the loss of each."""
    parser = argparse.ArgumentParser(description="Train a small transformer on random tokens.")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--words", type=int, default=8192)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = LanguageModel(options.words, options.width, options.layers, options.heads).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data = RandomTokens(8 * options.batch, options.tokens, options.words)
    loader = DataLoader(data, batch_size=options.batch, num_workers=options.workers, pin_memory=device.type == "cuda")
    for number, batch in enumerate(batches(loader, options.steps), start=1):
        loss = train_step(model, optimizer, batch.to(device, non_blocking=True))
        print(f"step {number}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
