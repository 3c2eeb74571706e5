"""
Lightning: watch a network while it trains
==========================================

``Monitor`` measures a network at the same points every few steps. It works in any loop: call ``monitor.step(net, step)``. With Lightning it is a callback.
The weights after training are bit for bit those without it.
"""

# %%
# A Lightning module
# ------------------

import logging
import warnings

import lightning
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import inscape
from inscape.training.lightning import lightning_callback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")

digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)


class Digits(lightning.LightningModule):
    """A perceptron of two hidden layers."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, 40),
            torch.nn.ReLU(),
            torch.nn.Linear(40, 40),
            torch.nn.ReLU(),
            torch.nn.Linear(40, 10),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.003)


# %%
# Train it with a monitor
# -----------------------
# The monitor measures at 60 test images, about ten times per power of ten of steps. ``network`` picks the network out of the module.

lightning.seed_everything(0, verbose=False)
module = Digits()
monitor = inscape.Monitor(
    x[900:],
    y[900:],
    measures={"region_count": {"n_probes": 40}, "total_variation": {}, "accuracy": {}},
    every="log",
    n_points=60,
)
trainer = lightning.Trainer(
    max_epochs=6,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[lightning_callback(monitor, network=lambda module: module.net)],
)
trainer.fit(module, DataLoader(TensorDataset(x[:900], y[:900]), batch_size=32, shuffle=True))

# %%
# The measurements are a table, and a picture.

monitor.to_frame().tail()

# %%

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
monitor.plot(ax, title="A network of digits, watched")
plt.show()

# %%
# In a loop of your own
# ---------------------
# ``log_fn`` sends the numbers to your logger::
#
#     monitor = inscape.Monitor(x, y, every=100, log_fn=wandb.log)
#     for step, batch in enumerate(loader):
#         ...
#         monitor.step(net, step)
