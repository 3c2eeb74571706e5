"""Draw the pictures of docs/explore.md and the saved page it links to: `python docs/explore_pictures.py`.

Needs Chromium and playwright. The networks are trained here for a few seconds on the digits of scikit-learn.
"""

import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

import inscape
from inscape.training import load_data

HERE = Path(__file__).parent
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "device_scale_factor": 2}


def main() -> None:
    """Train, save, look."""
    data = load_data("digits")
    models = {"width 32": trained(data, 32), "width 12": trained(data, 12)}
    explorer = inscape.explore(models, data.x, data.y, title="digits", rows=(0, 1, 2))
    (HERE / "gallery").mkdir(exist_ok=True)
    print(explorer.save(HERE / "gallery" / "digits.html"))
    with explorer:
        shoot(
            explorer.url, "explore", DESKTOP, "#show=edges.points.names&pins=-3.6,-0.7;-0.3,-1.2", (0.42, 0.4)
        )
        shoot(
            explorer.url,
            "explore-against",
            DESKTOP | {"color_scheme": "dark"},
            "#compare=difference.1",
            (0.6, 0.55),
        )
        shoot(explorer.url, "explore-phone", PHONE, "#fill=pattern", (0.5, 0.5))


def trained(data: Any, width: int) -> nn.Module:
    """A network of two hidden layers, after 400 steps."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )
    x, y = torch.tensor(np.asarray(data.x, np.float32)), torch.tensor(data.y)
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(400):
        some = torch.randint(0, len(x), (128,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[some]), y[some]).backward()
        optimiser.step()
    return net


def shoot(url: str, name: str, device: dict[str, Any], state: str, at: tuple[float, float]) -> None:
    """Open the page in a state, point at a part of the picture, and keep what is seen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(**device).new_page()
        page.goto(url + state)
        page.wait_for_selector(".badge[data-kind=exact]", timeout=180_000)
        page.wait_for_timeout(4000)
        box = page.locator(".surface").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])
        page.wait_for_timeout(4000)
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")  # in all its colours: they mean classes
        shot.save(HERE / "images" / f"{name}.png", optimize=True)
        print(HERE / "images" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
