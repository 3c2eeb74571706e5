"""One number and its error: the measures."""

from inscape.measures.ranking import Ranking, rank
from inscape.measures.region_count import region_count
from inscape.measures.region_count_result import RegionCount
from inscape.measures.table import MeasureTable, measure

__all__ = ["MeasureTable", "Ranking", "RegionCount", "measure", "rank", "region_count"]
