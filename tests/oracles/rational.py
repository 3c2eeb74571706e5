"""Small networks on segments in rational arithmetic: pieces, slopes and decision regions, nothing rounded.

Weights and ends of a segment are floats, hence rational numbers. Along x(t) = (1 - t) start + t end every
entry of every layer is a line a + b t between neighbouring break points, with rational a and b; break points
are roots of such lines. So nothing needs a tolerance: two numbers are equal or they are not.

    pieces = exact_pieces(layers_of(module), start, end)     # the activation regions
    linear_pieces(pieces)                                    # neighbours of equal slope merged
    decision_on(pieces)                                      # labels and the t where they change
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise

from torch import nn

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Line:
    """The function t -> a + b t."""

    a: Fraction
    b: Fraction = ZERO

    def __call__(self, t):
        return self.a + self.b * t

    def __add__(self, other):
        return Line(self.a + other.a, self.b + other.b)

    def __sub__(self, other):
        return Line(self.a - other.a, self.b - other.b)

    def scaled(self, factor):
        """The line times a number."""
        return Line(factor * self.a, factor * self.b)

    def root_between(self, low, high):
        """Where it is zero strictly between, as a list of none or one."""
        root = -self.a / self.b if self.b else low
        return [root] if low < root < high else []


NOTHING = Line(ZERO)


@dataclass(frozen=True)
class Piece:
    """An interval of t on which every entry of a layer is one line."""

    low: Fraction
    high: Fraction
    lines: tuple[Line, ...]

    @cached_property
    def inside(self):
        """A t strictly inside: about half-way, with few digits where that is possible."""
        middle = (self.low + self.high) / 2
        short = Fraction(float(middle))
        return short if self.low < short < self.high else middle

    def cut(self, places):
        """The pieces between the given places inside."""
        edges = [self.low, *sorted(set(places)), self.high]
        return [Piece(a, b, self.lines) for a, b in pairwise(edges)]


# Layers: `cuts` says where a piece has to be cut, `apply` what becomes of a piece without such places inside.


@dataclass(frozen=True)
class Affine:
    """y = W x + b."""

    weight: tuple[tuple[Fraction, ...], ...]
    bias: tuple[Fraction, ...]

    def cuts(self, piece):
        """An affine map bends nowhere."""
        return []

    def apply(self, piece):
        """W and b on intercepts and slopes alike."""
        lines = []
        for row, offset in zip(self.weight, self.bias, strict=True):
            terms = [(w, z) for w, z in zip(row, piece.lines, strict=True) if w and z != NOTHING]
            a = sum((w * z.a for w, z in terms), offset)
            b = sum((w * z.b for w, z in terms), ZERO)
            lines.append(Line(a, b))
        return tuple(lines)


@dataclass(frozen=True)
class Leaky:
    """z for z > 0, slope times z otherwise; a relu has slope 0."""

    slope: Fraction = ZERO

    def cuts(self, piece):
        """The roots of all entries."""
        return [t for z in piece.lines for t in z.root_between(piece.low, piece.high)]

    def apply(self, piece):
        """Each entry by its sign inside."""
        return tuple(z if z(piece.inside) > 0 else z.scaled(self.slope) for z in piece.lines)


@dataclass(frozen=True)
class Clip:
    """The nearest number to z between two bounds."""

    low: Fraction
    high: Fraction

    def cuts(self, piece):
        """Where an entry meets either bound."""
        bounds = Line(self.low), Line(self.high)
        return [t for z in piece.lines for c in bounds for t in (z - c).root_between(piece.low, piece.high)]

    def apply(self, piece):
        """Each entry by where it is inside."""
        return tuple(self._clipped(z, z(piece.inside)) for z in piece.lines)

    def _clipped(self, z, value):
        return Line(self.low) if value <= self.low else Line(self.high) if value >= self.high else z


@dataclass(frozen=True)
class MaxPool:
    """The largest of each `size` neighbouring entries."""

    size: int

    def _windows(self, lines):
        return [lines[k : k + self.size] for k in range(0, len(lines), self.size)]

    def cuts(self, piece):
        """The corners of the upper envelope of every window."""
        return [t for w in self._windows(piece.lines) for t in envelope_corners(w, piece.low, piece.high)]

    def apply(self, piece):
        """The entry of each window that is largest inside."""
        return tuple(max(w, key=lambda z: z(piece.inside)) for w in self._windows(piece.lines))


def envelope_corners(lines, low, high):
    """Where the largest of some lines changes its slope, strictly between low and high."""
    crossings = {t for f, g in combinations(set(lines), 2) for t in (f - g).root_between(low, high)}
    corners = []
    for t in crossings:
        largest = max(f(t) for f in lines)
        slopes = {f.b for f in lines if f(t) == largest}
        if len(slopes) > 1:
            corners.append(t)
    return sorted(corners)


def layers_of(module):
    """The layers of a `Sequential` of linear, piecewise-linear and reshaping modules."""
    return [layer for m in module for layer in _layer(m)]


def _layer(m):
    if isinstance(m, nn.Linear):
        weight = tuple(tuple(map(Fraction, row)) for row in m.weight.tolist())
        return [
            Affine(weight, tuple(map(Fraction, [0.0] * len(weight) if m.bias is None else m.bias.tolist())))
        ]
    if isinstance(m, nn.ReLU):
        return [Leaky()]
    if isinstance(m, nn.LeakyReLU):
        return [Leaky(Fraction(m.negative_slope))]
    if isinstance(m, nn.Hardtanh):  # relu6 is one
        return [Clip(Fraction(m.min_val), Fraction(m.max_val))]
    if isinstance(m, nn.MaxPool1d):
        return [MaxPool(m.kernel_size)]
    assert isinstance(m, nn.Flatten | nn.Unflatten), f"no rational counterpart of {m}"
    return []


def values_at(layers, x):
    """The output of the layers at one point, in Fractions."""
    piece = Piece(ZERO, ONE, tuple(Line(Fraction(v)) for v in x))
    for layer in layers:
        piece = Piece(ZERO, ONE, layer.apply(piece))
    return [z.a for z in piece.lines]


def exact_pieces(layers, start, end):
    """The activation regions on x(t) = (1 - t) start + t end, 0 <= t <= 1, with the lines of the output."""
    lines = tuple(Line(Fraction(a), Fraction(b) - Fraction(a)) for a, b in zip(start, end, strict=True))
    pieces = [Piece(ZERO, ONE, lines)]
    for layer in layers:
        parts = [part for p in pieces for part in p.cut(layer.cuts(p))]
        pieces = [Piece(p.low, p.high, layer.apply(p)) for p in parts]
    return pieces


def knots_of(pieces):
    """The t between neighbouring pieces."""
    return [p.low for p in pieces[1:]]


def linear_pieces(pieces, tolerance=ZERO):
    """How many pieces are left once neighbours are merged whose slopes differ by at most a part of them."""
    return 1 + sum(_bends(p, q, tolerance) for p, q in pairwise(pieces))


def _bends(p, q, tolerance):
    pairs = [(f.b, g.b) for f, g in zip(p.lines, q.lines, strict=True)]
    largest = max(max(abs(f), abs(g)) for f, g in pairs)
    return max(abs(f - g) for f, g in pairs) > tolerance * largest


@dataclass(frozen=True)
class Decision:
    """Decision regions of a segment.

    Attributes:
        labels: of each region.
        boundaries: the t between neighbouring regions.
        is_tied: whether two scores are equal and largest on some interval.
    """

    labels: list[int]
    boundaries: list[Fraction]
    is_tied: bool


def decision_on(pieces):
    """The regions of equal label: the first largest score, or whether a single score is positive."""
    labels, boundaries, is_tied = [], [], False
    for piece in pieces:
        lines = (NOTHING, *piece.lines) if len(piece.lines) == 1 else piece.lines
        for part in piece.cut(envelope_corners(lines, piece.low, piece.high)):
            values = [f(part.inside) for f in lines]
            label = values.index(max(values))
            is_tied |= sum(v == values[label] for v in values) > 1
            if not labels or labels[-1] != label:
                boundaries.append(part.low)
                labels.append(label)
    return Decision(labels, boundaries[1:], is_tied)


def lead_at(layers, start, end, t, label, other):
    """By how much the score of one label exceeds that of another at the float t."""
    s = Fraction(t)
    x = [(1 - s) * Fraction(a) + s * Fraction(b) for a, b in zip(start, end, strict=True)]
    scores = values_at(layers, x)
    scores = [ZERO, *scores] if len(scores) == 1 else scores
    return scores[label] - scores[other]
