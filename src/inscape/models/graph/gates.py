"""Choices by the sign of a value, as piecewise-linear nodes: where(d > 0, a, b), and so d * (d > 0).

A choice is continuous if its two sides meet where d = 0. That is decided by algebra. Every node is written
as a linear combination of others as far back as its operations act entry by entry; if the difference a - b is
then phi(d) for a piecewise-linear function phi of one variable with phi(0) = 0, the choice is

    b + s_0 relu(d) + s_1 relu(d - t_1) + ...,

where s_0 is the slope of phi to the right of 0 and s_i how it changes at t_i > 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from inscape.models.graph import affine
from inscape.models.graph.network import Jumps, Node, NotSupportedYet
from inscape.models.graph.piecewise import Bend, Leaky

Emit = Callable[..., int]
"""Appends an operation on nodes and returns the number of its node."""


@dataclass(frozen=True)
class Positive:
    """The condition that the value of a node is > 0, entry by entry."""

    node: int


@dataclass(frozen=True)
class Not:
    """The opposite of a condition."""

    condition: "Condition"


@dataclass(frozen=True)
class Both:
    """Two conditions at once."""

    first: "Condition"
    second: "Condition"


Condition = Positive | Not | Both


def mapped(condition: Condition, function: Callable[[int], int]) -> Condition:
    """The same condition on other nodes.

    >>> mapped(Not(Both(Positive(1), Positive(2))), lambda i: i + 10)
    Not(condition=Both(first=Positive(node=11), second=Positive(node=12)))
    """
    match condition:
        case Positive(node):
            return Positive(function(node))
        case Not(inner):
            return Not(mapped(inner, function))
        case Both(first, second):
            return Both(mapped(first, function), mapped(second, function))


Operand = int | Tensor
"""A node, or a constant that broadcasts to its shape."""


class AffineForm(NamedTuple):
    """The value sum_i terms[i] x_i + offset of nodes x_i, entry by entry; in float64."""

    terms: dict[int, Tensor]
    """The coefficient of each node, by its number."""
    offset: Tensor
    """What is added."""


class Hinge(NamedTuple):
    """The function slope * relu(d - start) of one variable d."""

    start: Tensor
    """Where it leaves zero."""
    slope: Tensor
    """Its slope from there on."""


class Gates:
    """Builds choices from the nodes of one graph.

    Args:
        nodes: those recorded so far; the list may grow.
        emit: appends to them.
        dtype: the precision of the model: sides that differ by its rounding only do meet.
    """

    def __init__(self, nodes: Sequence[Node], emit: Emit, dtype: torch.dtype) -> None:
        self._nodes = nodes
        self._emit = emit
        self._tolerance = 16 * torch.finfo(dtype).eps
        self._forms: dict[int, AffineForm] = {}

    def where(self, condition: Condition, a: Operand, b: Operand) -> Operand:
        """The value `a` where a condition holds and `b` elsewhere.

        Raises:
            Jumps: if the two do not meet where the condition changes.
            NotSupportedYet: if that cannot be decided.
        """
        match condition:
            case Not(inner):
                return self.where(inner, b, a)
            case Both(first, second):
                return self.where(first, self.where(second, a, b), b)
            case Positive(node):
                d = self._form(node)
                hinges = self._hinges(d, _sum(self._form(a), self._form(b), -1.0))
                return self._built(node, hinges, b)

    def _built(self, d: int, hinges: Sequence[Hinge], b: Operand) -> Operand:
        """The nodes of b + sum_i slope_i relu(d - start_i)."""
        result = b
        for start, slope in hinges:
            node = d if not start.any() else self._emit(affine.shift(-start), d)
            node = self._emit(Leaky(name="where"), node)
            if bool((slope != 1).any()):
                node = self._emit(affine.scale(slope), node)
            if isinstance(result, int):
                result = self._emit(affine.add(), result, node)
            else:
                result = self._emit(affine.shift(result), node) if result.any() else node
        return result

    def _form(self, value: Operand) -> AffineForm:
        """A value by the nodes that entry-by-entry operations start from."""
        if isinstance(value, Tensor):
            return AffineForm({}, value.double())
        if value not in self._forms:
            self._forms[value] = self._expanded(value)
        return self._forms[value]

    def _expanded(self, i: int) -> AffineForm:
        node = self._nodes[i]
        if node.affine is not None and node.affine.entrywise is not None:
            slope, offset = (c.double() for c in node.affine.entrywise)
            return _sum(AffineForm({}, offset), self._form(node.inputs[0]), slope)
        if node.affine is None or node.affine.factors is None:
            return AffineForm({i: _ONE}, _ZERO)
        form = AffineForm({}, sum((c.double() for c in node.affine.offsets), _ZERO))
        for j, factor in zip(node.inputs, node.affine.factors, strict=True):
            form = _sum(form, self._form(j), factor)
        return form

    def _hinges(self, d: AffineForm, e: AffineForm) -> list[Hinge]:
        """The function of d that is e where d > 0 and 0 elsewhere, if it is continuous."""
        if not any(c.any() for c in e.terms.values()) and not e.offset.any():
            return []
        slope = self._ratio(e, d)
        if slope is not None and self._is_small(rest := _sum(e, d, -slope), e):
            if bool(rest.offset.abs().max() <= self._tolerance * self._scale(e, d)):
                return [Hinge(_ZERO, slope)]
            raise Jumps("its two sides", "do not meet")
        return self._bent_hinges(d, e)

    def _bent_hinges(self, d: AffineForm, e: AffineForm) -> list[Hinge]:
        """The same where e holds bends of d too."""
        bends, straight = [], dict(e.terms)
        for i, factor in e.terms.items():
            op = self._nodes[i].bend
            if i in d.terms or op is None or not op.is_elementwise:
                continue
            inner = self._form(self._nodes[i].inputs[0])
            along = self._ratio(inner, d)
            if along is None or not self._is_small(rest := _sum(inner, d, -along), inner):
                continue
            bends.append(_Bent(op, factor, along, rest.offset))
            del straight[i]
        plain = AffineForm(straight, e.offset)
        slope = self._ratio(plain, d) if straight else _ZERO
        if slope is None or not self._is_small(rest := _sum(plain, d, -slope), e):
            raise NotSupportedYet("its two sides", "are not seen to meet")
        jump = sum((b.factor * b.op.cast(torch.float64)(b.offset) for b in bends), rest.offset)
        if bool(jump.abs().max() > self._tolerance * self._scale(e, d, *(b.offset for b in bends))):
            raise Jumps("its two sides", "do not meet")
        first = sum((b.slope_after_zero for b in bends), slope)
        later = [hinge for b in bends for hinge in b.hinges]
        return [p for p in (Hinge(_ZERO, first), *later) if bool((p.slope != 0).any())]

    def _ratio(self, form: AffineForm, d: AffineForm) -> Tensor | None:
        """The number c such that the terms of a form are c times those of d, judged by the largest of d."""
        if not d.terms:
            return None
        i, largest = max(d.terms.items(), key=lambda t: float(t[1].abs().min()))
        return form.terms.get(i, _ZERO) / largest if bool((largest != 0).all()) else None

    def _is_small(self, rest: AffineForm, of: AffineForm) -> bool:
        """Whether the terms of a difference are zero up to rounding."""
        largest = max((float(c.abs().max()) for c in of.terms.values()), default=1.0)
        return all(float(c.abs().max()) <= self._tolerance * largest for c in rest.terms.values())

    def _scale(self, *operands: AffineForm | Tensor) -> float:
        offsets = [p if isinstance(p, Tensor) else p.offset for p in operands]
        return max(float(o.abs().max()) for o in offsets)


@dataclass(frozen=True)
class _Bent:
    """The function factor * op(along * d + offset) of one variable d."""

    op: Bend
    factor: Tensor
    along: Tensor
    offset: Tensor

    @property
    def slope_after_zero(self) -> Tensor:
        """The slope to the right of d = 0."""
        step = torch.where(self.along < 0, -1.0, 1.0)
        nudged = self.offset + step * 1e-9 * (1 + self.offset.abs())
        return self.factor * self.op.cast(torch.float64).derivative(nudged, self.along.expand(nudged.shape))

    @property
    def hinges(self) -> list[Hinge]:
        """Where the slope changes to the right of 0, and by how much."""
        hinges = []
        jumps = self.op.slope_jumps
        if jumps is None:
            raise NotSupportedYet("of a prelu by entry")
        for kink, jump in zip(self.op.kinks, jumps, strict=True):
            start = (kink - self.offset) / self.along
            is_right = start > 1e-9 * (1 + self.offset.abs() / self.along.abs())
            if bool(is_right.all()):
                hinges.append(Hinge(start, self.factor * self.along.abs() * jump))
            elif bool(is_right.any()):
                raise NotSupportedYet("that bends at other places from entry to entry")
        return hinges


_ONE, _ZERO = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)


def _sum(a: AffineForm, b: AffineForm, factor: Tensor | float) -> AffineForm:
    """The form a + factor b."""
    times = factor.double() if isinstance(factor, Tensor) else torch.tensor(factor, dtype=torch.float64)
    terms = dict(a.terms)
    for i, c in b.terms.items():
        terms[i] = terms.get(i, _ZERO) + times * c
    return AffineForm({i: c for i, c in terms.items() if bool((c != 0).any())}, a.offset + times * b.offset)
