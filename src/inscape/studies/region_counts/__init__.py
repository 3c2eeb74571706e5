"""Region counts and the generalisation gap, end to end (Li et al. 2025, arXiv 2505.11370)."""

from inscape.studies.region_counts.grid import configurations
from inscape.studies.region_counts.rows import batch, cell
from inscape.studies.study import Study
from inscape.studies.trained import together

STUDY = Study(
    name="region-counts",
    title="Region counts and the generalisation gap",
    configurations=configurations,
    cell=cell,
    batch=batch,
    together=together,
    options={
        "data": "data sets, as mnist,cifar10",
        "nets": "models, as mlp,resnet18,tree,forest; each on every data set",
    },
)
