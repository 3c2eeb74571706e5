"""Region counts and the generalisation gap, end to end (Li et al. 2025, arXiv 2505.11370).

    inscape study run region-counts --scale small --data mnist,cifar10 --nets mlp,resnet18,tree

`settings` and `model_grid` say what is trained, `rows` what is measured, `selection` and `paper_tables` what
is asked of the rows, `claims` what they answer, `summary` how that looks. `edge_of_stability` is a study of
its own, of the paper's Theorem 6.
"""

from inscape.studies.region_counts.claims import CLAIMS, concerns
from inscape.studies.region_counts.model_grid import OPTIONS, configurations
from inscape.studies.region_counts.rows import batch, cell
from inscape.studies.region_counts.summary import summarise
from inscape.sweeps.study import Study
from inscape.sweeps.trained_model import together

STUDY = Study(
    name="region-counts",
    title="Region counts and the generalisation gap",
    paper="Li et al. 2025, Fig. 2 to 5, 7, 8 and Tables 1 to 8",
    claims=CLAIMS,
    configurations=configurations,
    cell=cell,
    summarise=summarise,
    batch=batch,
    together=together,
    concerns=concerns,
    options=OPTIONS,
    scales=("smoke", "small", "medium", "paper"),
)
