"""The study of choosing a model: its models, what they are asked, and the verdicts."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import inscape
from inscape.studies.choosing import SIDES, STUDY, batch, choice_table, families, wrong_labels
from inscape.sweeps.tasks import as_tasks


def frame_of(sign, seed=0):
    """Rows in which confidence (sign 1) or few regions (sign -1) go with the accuracy; the other is noise."""
    rng = np.random.default_rng(seed)
    lines = []
    for i, noise in enumerate(np.repeat([0.0, 0.3], 30)):
        accuracy = rng.uniform(0.5, 1)
        lines.append(
            {"model": "mlp", "n_train": 300, "label_noise": noise, "configuration": f"{i}", "replicate": 0}
            | {"train_accuracy": 1.0, "test_accuracy": accuracy, "hidden": "[4]", "seconds": 1.0}
            | {"region_count": rng.normal() if sign > 0 else -accuracy}
            | {"confidence": accuracy if sign > 0 else rng.normal()}
        )
    return pd.DataFrame(lines)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_findings_follow_the_rows(sign, tmp_path):
    frame = frame_of(sign)
    trees = frame.assign(model="tree", configuration=frame["configuration"] + "t")
    found = STUDY.summarise(pd.concat([frame, trees], ignore_index=True), tmp_path).findings
    assert found["confidence" if sign > 0 else "count"].holds is True
    assert found["count" if sign > 0 else "confidence"].holds is not True
    assert found["ahead"].holds is (sign < 0)
    assert (tmp_path / "choosing.png").stat().st_size > 1000


def test_a_share_of_the_labels_is_wrong_and_the_rest_untouched():
    y = np.arange(100) % 10
    changed = wrong_labels(y, 0.3, 10)
    assert (changed != y).sum() == 30
    assert set(changed) <= set(range(10))
    assert np.array_equal(wrong_labels(y, 0.3, 10), changed)
    assert np.array_equal(wrong_labels(y, 0.0, 10), y)


def test_the_small_scale_has_54_networks_and_pairs_of_seeds():
    cells = STUDY.configurations("small")
    assert sum(c["model"] == "mlp" for c in cells) == 54
    groups = pd.Series([STUDY.together(c) for c in cells]).value_counts()
    assert groups.eq(2).all()


def test_a_pair_of_seeds_agrees_as_often_as_its_labels_do():
    cells = [c for c in STUDY.configurations("smoke") if c["model"] == "mlp"]
    pair = [c for c in cells if STUDY.together(c) == STUDY.together(cells[0])]
    seeded = [t.seeded | {"epochs": 3, "n_lines": 5} for t in as_tasks(pair, 0)]
    first, second = batch(seeded)
    assert first["agreement"] == second["agreement"] <= 1
    assert 0.1 <= first["confidence"] <= 1
    assert set(SIDES) <= set(first)


@pytest.mark.slow
def test_from_nothing_to_the_page(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        run = inscape.studies.run("choosing", scale="smoke", out=tmp_path, executor=executor)
    assert run.failed == {}
    table = choice_table(run.frame)
    assert set(table["family"]) == set(families(run.frame))
    assert table["pairs"].between(0, 1).all()
    assert "Choosing a model" in (tmp_path / "summary.md").read_text()
