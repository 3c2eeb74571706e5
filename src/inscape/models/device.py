"""Where a torch module runs: how much fits there, how points get there, and labels from half precision.

Nothing here needs an accelerator: a processor is a device too, with memory that may run out.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from inscape.arrays import Array
from inscape.budget import in_bytes
from inscape.errors import ModelError

Answer = TypeVar("Answer")

BYTES_OF_CACHE = 4 * 2**20
"""Of a processor, by thread: a layer's output should stay in the cache of the core that made it."""
SHARE_OF_FREE_MEMORY = 1 / 8
"""Of an accelerator, for the largest tensor of a batch: its input, its output and what a library works in are
there at the same time."""
UNKNOWN_MEMORY = 2**31
"""Free bytes of an accelerator that does not say."""
FEW_POINTS = 64
"""Batches up to this length are evaluated in full precision alone: there is nothing to gain."""
CHECKED_EVERY = 16
"""One point of this many is evaluated in both precisions, besides those near a boundary."""
WITHOUT_FLOAT64 = ("mps",)
"""Kinds of devices that compute nothing in float64: what needs it is computed on the processor instead."""
SAFETY = 4.0
"""Times the largest difference that was seen between the precisions: nearer margins are evaluated anew."""


class Device:
    """A device that a module runs on.

    Attributes:
        torch_device: as torch names it.
        most_points: the longest batch that is sent, once one was too long for the memory.
    """

    def __init__(self, torch_device: torch.device) -> None:
        self.torch_device = torch_device
        self.most_points: int | None = None
        self._staging: torch.Tensor | None = None

    def batch_bytes(self) -> int:
        """What the largest tensor of a batch may take: the cache of a processor, a share of what is free."""
        if self.torch_device.type == "cpu":
            return BYTES_OF_CACHE * torch.get_num_threads()
        free = self.free_memory()
        return int(SHARE_OF_FREE_MEMORY * (UNKNOWN_MEMORY if free is None else free))

    def free_memory(self) -> int | None:
        """The bytes that are free on it; None where torch does not tell."""
        if self.torch_device.type == "cuda":
            return int(torch.cuda.mem_get_info(self.torch_device)[0])
        if self.torch_device.type == "mps":
            return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
        return None

    def send(self, x: Array, dtype: torch.dtype) -> torch.Tensor:
        """Points on the device; to CUDA through pinned memory, from which they are copied without a stop.

        The memory is used again by the next batch: what was sent must have been answered before.
        """
        points = torch.from_numpy(x)
        if self.torch_device.type != "cuda":
            return points.to(self.torch_device, dtype)
        return self.staged(points).to(self.torch_device, non_blocking=True).to(dtype)

    def staged(self, points: torch.Tensor) -> torch.Tensor:
        """The points in pinned memory, which the next call uses again."""
        flat = points.reshape(-1)
        if (
            self._staging is None
            or self._staging.numel() < flat.numel()
            or self._staging.dtype != points.dtype
        ):
            self._staging = torch.empty(flat.numel(), dtype=points.dtype, pin_memory=True)
        staged = self._staging[: flat.numel()]
        staged.copy_(flat)
        return staged.reshape(points.shape)

    def release(self) -> None:
        """Give memory back that torch keeps for later."""
        if self.torch_device.type == "cuda":
            torch.cuda.empty_cache()
        elif self.torch_device.type == "mps":
            torch.mps.empty_cache()

    def in_memory(self, evaluate: Callable[[Array], Answer], x: Array, name: str) -> list[Answer]:
        """What `evaluate` says of the points; of halves, and halves of these, where the memory runs out.

        The length that was too long is not tried again.
        """
        if self.most_points is None or len(x) <= self.most_points:
            try:
                return [evaluate(x)]
            except (RuntimeError, MemoryError) as error:  # torch's own is a RuntimeError
                if not is_out_of_memory(error):
                    raise
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            # The error has gone with its traceback, and the tensors that this held.
            self.release()
            if len(x) == 1:
                free = self.free_memory()
                room = "" if free is None else f" ({in_bytes(free)} free)"
                raise ModelError(
                    f"{name} does not fit into the memory of {self.torch_device}{room} with one point: "
                    f"{reason}; free memory there, or take another device"
                )
            self.most_points = len(x) // 2
        most = self.most_points or 1
        batches = (x[i : i + most] for i in range(0, len(x), most))
        return [answer for batch in batches for answer in self.in_memory(evaluate, batch, name)]


def in_precision(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """The module itself, its numbers in a precision; on the processor if where it runs there is none such."""
    home = next((p.device for p in module.parameters()), torch.device("cpu"))
    if dtype == torch.float64 and lacks_float64(home):
        module = module.cpu()
    return module.to(dtype)


def lacks_float64(device: torch.device) -> bool:
    """Whether a device computes nothing in float64."""
    return device.type in WITHOUT_FLOAT64


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device, or the processor, had no memory left.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ..."))
    True
    >>> is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    False
    """
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text


class MixedPrecision:
    """Labels as in full precision from scores in half precision, most of them.

    Let e be the largest difference between a score in half and in full precision. If the margin of a point
    (best score minus second best; of one score its distance to 0) is above 2 e in half precision, its label
    is the same in both. e is not known: it is measured at every sixteenth point and at all points of a first
    batch, and a point whose margin is not above four times 2 e is evaluated in full precision as well. Each
    of these may raise e, until no point is too near. Scores of the other points stay those of half precision.

    Attributes:
        difference: e, as far as it was seen.
        n_points, n_full: how many points were asked for, and evaluated in full precision.
    """

    def __init__(self) -> None:
        self.difference: float | None = None
        self.n_points = self.n_full = 0
        self._lock = threading.Lock()

    def scores(self, x: Array, half: Callable[[Array], Array], full: Callable[[Array], Array]) -> Array:
        """Scores (n, c) of points whose labels are those of full precision.

        Args:
            x: points.
            half: from points to scores whose largest, or sign if there is one, is the label.
            full: the same in full precision.
        """
        with self._lock:
            self.n_points += len(x)
        if len(x) <= FEW_POINTS:
            self._count(len(x))
            return full(x)
        told = half(x)
        margins = margins_of(told)
        known = np.zeros(len(x), dtype=bool)
        wanted = np.ones(len(x), dtype=bool)
        if self.difference is not None:
            wanted = np.arange(len(x)) % CHECKED_EVERY == 0
            wanted |= margins <= 2 * SAFETY * self.difference
        while wanted.any():
            right = full(x[wanted])
            self._count(len(right))
            self._saw(float(np.abs(right - told[wanted]).max()))
            told[wanted] = right
            known |= wanted
            wanted = ~known & (margins <= 2 * SAFETY * (self.difference or 0.0))
        return told

    def _count(self, n: int) -> None:
        with self._lock:
            self.n_full += n

    def _saw(self, difference: float) -> None:
        with self._lock:
            self.difference = max(difference, self.difference or 0.0)


def margins_of(scores: Array) -> Array:
    """How far each label is from another: best score minus second best, or |score| where there is one.

    >>> margins_of(np.array([[1.0, 4.0, 2.5]])).tolist(), margins_of(np.array([[-0.5]])).tolist()
    ([1.5], [0.5])
    """
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def as_device(device: str | torch.device) -> torch.device:
    """The device of that name, if it can compute here."""
    try:
        known = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        line = str(error).splitlines()[0]
        raise ModelError(f"device={str(device)!r} cannot be used here: {line}") from error
    if known.type == "meta":
        raise ModelError("device='meta' computes nothing: give a device such as 'cpu'")
    return known
