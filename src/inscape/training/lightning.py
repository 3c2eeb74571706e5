"""The monitor as a Lightning callback."""

from collections.abc import Callable
from typing import Any

from inscape.errors import MissingExtraError
from inscape.training.monitor import Monitor


def lightning_callback(monitor: Monitor, *, network: Callable[[Any], Any] | None = None) -> Any:
    """A `lightning.pytorch.Callback` that measures after training batches and logs to the trainer's loggers.

    Args:
        monitor: what to measure, and when; the step is the trainer's `global_step`.
        network: picks the network out of the LightningModule, such as `lambda m: m.net`; by default the
            module itself.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError as error:
        raise MissingExtraError("lightning", "lightning", "a Lightning callback") from error

    class MonitorCallback(Callback):
        """Calls the monitor once per optimiser step."""

        def __init__(self) -> None:
            self.monitor = monitor
            self._last = -1

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """Measure before the first step."""
            self._measure(trainer, pl_module)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            """Measure if the schedule says so."""
            self._measure(trainer, pl_module)

        def _measure(self, trainer: Any, pl_module: Any) -> None:
            step = int(trainer.global_step)
            if step == self._last:  # batches that only accumulate gradients
                return
            self._last = step
            row = monitor.step(pl_module if network is None else network(pl_module), step)
            if row is not None:
                values = {k: v for k, v in row.items() if k not in ("step", "seconds") and v is not None}
                for logger in trainer.loggers:
                    logger.log_metrics(values, step=step)

    return MonitorCallback()
