"""Weights on disk, as safetensors."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inscape.errors import InscapeError, MissingExtraError
from inscape.files import replacing


def save_weights(module: nn.Module, path: str | Path, **about: Any) -> Path:
    """Write the state of a module, whole or not at all; `about` is stored beside it as JSON texts."""
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise MissingExtraError("safetensors", "safetensors", "saving weights") from error
    path = Path(path)
    state = {
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, value in module.state_dict().items()
    }
    content = save(state, {key: json.dumps(value) for key, value in about.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise InscapeError(f"cannot write {path}: {error.strerror or error}") from error
    return path
