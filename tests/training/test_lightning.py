"""The Lightning callback measures and changes nothing."""

import logging
import sys

import pytest
import torch
import torch.nn.functional as F
from networks import mlp

import inscape
from inscape.errors import MissingExtraError
from inscape.training.lightning import lightning_callback


def fitted(callbacks):
    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = mlp(4, 8, 2)

        def training_step(self, batch, index):
            x, y = batch
            return F.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
    module = Lit()
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", enable_model_summary=False, callbacks=callbacks, **options
    )
    trainer.fit(module, loader)
    return module


@pytest.mark.filterwarnings("ignore")
def test_the_callback_measures_by_global_step_and_changes_nothing():
    pytest.importorskip("lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    monitor = inscape.Monitor(x, (x[:, 0] > 0).long(), every=5)
    watched = fitted([lightning_callback(monitor, network=lambda module: module.net)])
    alone = fitted([])
    assert monitor.to_frame()["step"].tolist() == [0, 5, 10, 15]
    for a, b in zip(watched.parameters(), alone.parameters(), strict=True):
        assert torch.equal(a, b)


def test_without_lightning_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monitor = inscape.Monitor(torch.randn(4, 2))
    with pytest.raises(MissingExtraError, match=r"pip install 'inscape\[lightning\]'"):
        lightning_callback(monitor)
