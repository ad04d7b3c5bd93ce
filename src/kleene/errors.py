"""Every error and warning that Kleene can give, each with a stable code.

One class is one code. `CATALOGUE` lists them all; `docs/errors.md` explains each with an example, and a test keeps
the two in step. A query error knows the text and the place, and renders them with a caret.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of offsets into the query's text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)

CATALOGUE: dict[str, type[Problem]] = {}


class Problem:
    """What errors and warnings share: a code, a message, a place in a text, a hint."""

    code: ClassVar[str] = ""
    title: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.__dict__.get("code"):
            return
        if cls.code in CATALOGUE:
            raise TypeError(f"{cls.code} is taken by {CATALOGUE[cls.code].__name__}")
        CATALOGUE[cls.code] = cls

    def __init__(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)  # type: ignore[call-arg]
        self.message = message
        self.span = span
        self.hint = hint
        self.text: str | None = None
        self.origin = "query"

    def locate(self, text: str, origin: str = "query") -> None:
        """Attach the text that the span points into; the innermost text wins."""
        if self.text is None:
            self.text, self.origin = text, origin

    @property
    def line(self) -> int | None:
        return None if self._place is None else self._place[0]

    @property
    def column(self) -> int | None:
        return None if self._place is None else self._place[1]

    @property
    def _place(self) -> tuple[int, int] | None:
        if self.span is None or self.text is None:
            return None
        before = self.text[: self.span.start]
        return before.count("\n") + 1, self.span.start - (before.rfind("\n") + 1) + 1

    def render(self) -> str:
        """The message, the line with a caret under the exact place, and the hint."""
        severity = "warning" if isinstance(self, QueryWarning) else "error"
        lines = [f"{severity}[{self.code}]: {self.message}"]
        if self._place is not None and self.span is not None and self.text is not None:
            lines += _excerpt(self.text, self.span, *self._place, self.origin)
        if self.hint:
            lines.append(f"  = hint: {self.hint}")
        # Half a character, which a name may hold, cannot be printed.
        return "\n".join(lines).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def __str__(self) -> str:
        return self.render()


_WIDTH = 100


def _excerpt(text: str, span: Span, line: int, column: int, origin: str) -> list[str]:
    source = text.split("\n")[line - 1].rstrip("\r")
    # Blanks for tabs, and no control character of a query reaches the terminal.
    source = "".join(" " if sign == "\t" else sign if sign.isprintable() else "�" for sign in source)
    width = max(1, min(span.end, span.start + len(source) - column + 1) - span.start)
    left = max(0, column - 1 - _WIDTH // 2) if len(source) > _WIDTH else 0
    shown = source[left : left + _WIDTH]
    caret = " " * (column - 1 - left) + "^" * max(1, min(width, len(shown) - (column - 1 - left)))
    gutter = " " * len(str(line))
    return [f" {gutter}--> {origin}:{line}:{column}", f" {gutter} |", f" {line} | {shown}", f" {gutter} | {caret}"]


def _distance(left: str, right: str) -> int:
    """How many letters must be changed, added or dropped."""
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, 1):
        corner, row[0] = row[0], place
        for at, other in enumerate(right, 1):
            corner, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, corner + (letter != other))
    return row[-1]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that offers the nearest known name, or lists what there is when that is short."""
    names = sorted({candidate for candidate in known if candidate})
    folded = {candidate.casefold(): candidate for candidate in names}
    word = name.casefold()
    allowed = max(len(word) // 3, 1 if len(word) > 2 else 0)
    near = [c for c in folded if abs(len(c) - len(word)) <= allowed and _distance(word, c) <= allowed]
    near.sort(key=lambda c: (_distance(word, c), abs(len(c) - len(word)), c))
    near = near or get_close_matches(word, list(folded), n=1, cutoff=0.75)
    if near:
        return f"did you mean `{folded[near[0]]}`?"
    if 0 < len(names) <= 12:
        return "known here: " + ", ".join(f"`{candidate}`" for candidate in names)
    return None


class KleeneError(Problem, Exception):
    """The root of every error that Kleene raises on purpose."""


class QueryError(KleeneError):
    """The query is wrong."""


class DataError(KleeneError):
    """The query is right, the data or the request is not."""


class LimitError(KleeneError):
    """A budget of the run was exceeded."""


class PipelineError(KleeneError):
    """The pipeline file is wrong, or what it names is not as it says."""


class QueryWarning(Problem, UserWarning):
    """The query can run, but probably does not say what was meant."""


# KL1xx: the text ---------------------------------------------------------------------------------------------------


class SyntaxProblem(QueryError):
    code, title = "KL101", "syntax error"


class BadDuration(QueryError):
    code, title = "KL102", "bad duration"


class TooDeep(QueryError):
    code, title = "KL103", "nested too deeply"


class UnknownStrategy(QueryError):
    code, title = "KL104", "unknown selection strategy"


class BadChain(QueryError):
    code, title = "KL105", "only `=` can be chained"


class BadLiteral(QueryError):
    code, title = "KL106", "bad literal"


class UnknownSpelling(QueryError):
    code, title = "KL107", "unknown spelling of the language"


class BadRepetition(QueryError):
    code, title = "KL108", "impossible repetition"


class UnknownOutput(QueryError):
    code, title = "KL109", "unknown output mode"


class UnknownFunction(QueryError):
    code, title = "KL110", "unknown function"


class BadStatement(QueryError):
    code, title = "KL111", "KLEENE(…) in SQL used wrongly"


# KL2xx: names ------------------------------------------------------------------------------------------------------


class UnknownType(QueryError):
    code, title = "KL201", "unknown event type"


class UnknownVariable(QueryError):
    code, title = "KL202", "unknown variable"


class UnknownAttribute(QueryError):
    code, title = "KL203", "unknown attribute"


class AmbiguousAttribute(QueryError):
    code, title = "KL204", "ambiguous attribute"


class VariableUsedTwice(QueryError):
    code, title = "KL205", "variable used twice"


class BadParameter(QueryError):
    code, title = "KL206", "missing or unusable parameter"


class AmbiguousVariable(QueryError):
    code, title = "KL207", "ambiguous variable"


class DuplicateColumn(QueryError):
    code, title = "KL208", "output column named twice"


class BadDeclaration(QueryError):
    code, title = "KL209", "bad declaration"


class ReservedName(QueryError):
    code, title = "KL210", "name reserved for a result column"


class UnknownParameter(QueryError):
    code, title = "KL211", "value for a parameter that the query does not have"


class UnfitResult(QueryError):
    code, title = "KL212", "result does not fit its sink"


class NameTaken(QueryError):
    code, title = "KL213", "name that a query of the set has already"


class NoSuchQuery(QueryError):
    code, title = "KL214", "query that is not in the set"


# KL3xx: types ------------------------------------------------------------------------------------------------------


class TypeMismatch(QueryError):
    code, title = "KL301", "type mismatch"


class NotACondition(QueryError):
    code, title = "KL302", "not a condition"


class NotAValue(QueryError):
    code, title = "KL303", "not a value"


class WindowMismatch(QueryError):
    code, title = "KL304", "window does not fit the time column"


# KL4xx: meaning ----------------------------------------------------------------------------------------------------


class NegationAlone(QueryError):
    code, title = "KL401", "negation with nothing positive"


class NegationWithoutWindow(QueryError):
    code, title = "KL402", "negation at an end without WITHIN"


class NotSeparable(QueryError):
    code, title = "KL403", "condition mixes positive and negated parts"


class TwoNegations(QueryError):
    code, title = "KL404", "condition joins two negated variables"


class UnsupportedNegation(QueryError):
    code, title = "KL405", "negation of this form has no meaning"


class NotKleene(QueryError):
    code, title = "KL406", "index on a variable that is not a Kleene closure"


class MisplacedIteration(QueryError):
    code, title = "KL407", "`a[i]` outside its own iteration"


class BareKleene(QueryError):
    code, title = "KL408", "Kleene variable without an index or an aggregate"


class AggregateMisuse(QueryError):
    code, title = "KL409", "aggregate used wrongly"


class StrategyVariables(QueryError):
    code, title = "KL410", "wrong variables in the strategy's list"


class StrategyNeedsLine(QueryError):
    code, title = "KL411", "strategy needs a sequence"


class MisplacedClosure(QueryError):
    code, title = "KL412", "closure without brackets cannot stand here"


class EmptyPattern(QueryError):
    code, title = "KL413", "pattern could match no event"


class OutputNotAvailable(QueryError):
    code, title = "KL414", "output mode not available here"


class TimeoutsNotAvailable(QueryError):
    code, title = "KL415", "TIMEOUTS not available here"


class TooComplex(QueryError):
    code, title = "KL416", "condition or pattern too complex"


class NegatedInReturn(QueryError):
    code, title = "KL417", "negated variable returned"


class RepeatedGroup(QueryError):
    code, title = "KL418", "repetition or variable on a group"


class ClosureCondition(QueryError):
    code, title = "KL419", "condition on a closure is circular"


class CompositionCycle(QueryError):
    code, title = "KL420", "queries feed each other in a cycle"


class NotUnionCompatible(QueryError):
    code, title = "KL421", "streams of a union have other attributes"


class NothingOverwritten(QueryError):
    code, title = "KL422", "`.last` of an attribute that no event overwrites"


class NoInitialValue(QueryError):
    code, title = "KL423", "attribute of a fold without a first value"


class IncompleteStep(QueryError):
    code, title = "KL424", "step of a fold drops an attribute"


class NoTick(QueryError):
    code, title = "KL425", "DUR on timestamps without a tick"


class UnclearException(QueryError):
    code, title = "KL426", "exception beside another operator without parentheses"


class ExceptionCondition(QueryError):
    code, title = "KL427", "condition on an exception that nothing can test"


# KL5xx: data -------------------------------------------------------------------------------------------------------


class UnreadableFile(DataError):
    code, title = "KL501", "file cannot be read"


class UnknownFormat(DataError):
    code, title = "KL502", "unknown file format"


class MissingColumn(DataError):
    code, title = "KL503", "missing column"


class BadTimeColumn(DataError):
    code, title = "KL504", "column cannot serve as time"


class UnknownKind(DataError):
    code, title = "KL505", "unknown kind of events"


class MissingPackage(DataError):
    code, title = "KL506", "optional package not installed"


class MissingStream(DataError):
    code, title = "KL507", "input stream not given"


class UnusableColumn(DataError):
    code, title = "KL508", "column type not usable in a condition"


class TooManyBadRows(DataError):
    code, title = "KL509", "too many unreadable rows"


class NotCompressed(DataError):
    code, title = "KL510", "result is not compressed"


class BadSnapshot(DataError):
    code, title = "KL511", "snapshot cannot be restored"


class BadDivision(DataError):
    code, title = "KL512", "events cannot be divided so"


class NoDelay(KleeneError):
    code, title = "KL513", "nothing says how time passes on a stream"


class NotOnStreams(KleeneError):
    code, title = "KL514", "query cannot run on a stream"


class MixedZones(DataError):
    code, title = "KL515", "times with and without a time zone in one column"

    @classmethod
    def in_column(cls, name: str, naive: str, zoned: str) -> MixedZones:
        """`naive` and `zoned` say where times of each kind stand."""
        return cls(
            f"the times of `{name}` have no time zone in {naive} and have one in {zoned}",
            hint="give all of them a zone, or none: which moment a time without a zone means is not for us to say",
        )


class TimeTooLarge(DataError):
    code, title = "KL516", "a time that its column cannot hold"

    @classmethod
    def of(cls, kind: str) -> TimeTooLarge:
        return cls(
            f"the time column has the type {kind}, which cannot hold the time at which a window closes",
            hint="give the events a time column of int64, or of timestamps",
        )


# KL6xx: limits -----------------------------------------------------------------------------------------------------


class BudgetExceeded(LimitError):
    code, title = "KL601", "budget exceeded"


class UnboundedState(LimitError):
    code, title = "KL602", "state would grow for ever"


class BadRowLimit(LimitError):
    code, title = "KL603", "more bad rows than the pipeline allows"


# KL7xx: pipeline files ---------------------------------------------------------------------------------------------


class NotToml(PipelineError):
    code, title = "KL701", "pipeline file is not TOML"


class UnknownKey(PipelineError):
    code, title = "KL702", "unknown key in a pipeline file"


class BadValue(PipelineError):
    code, title = "KL703", "missing or unusable value in a pipeline file"


class UnknownName(PipelineError):
    code, title = "KL704", "name that the pipeline file does not define"


class MissingVariable(PipelineError):
    code, title = "KL705", "environment variable not set"


class SourceNotThere(PipelineError):
    code, title = "KL706", "source cannot be opened"


class SourceColumn(PipelineError):
    code, title = "KL707", "source does not have the column"


class BadTarget(PipelineError):
    code, title = "KL708", "result cannot be written there"


class SparkFailed(PipelineError):
    code, title = "KL709", "Spark could not finish the run"


class MissingConnector(PipelineError):
    code, title = "KL710", "Spark's connector is not here"


class WorkersWithoutKleene(KleeneError):
    code, title = "KL711", "Spark's Python workers lack Kleene"

    @classmethod
    def of(cls, python: str, problem: str) -> WorkersWithoutKleene:
        return cls(
            f"Spark's tasks run {python}, where Kleene cannot be used: {problem}",
            hint="name a Python that has Kleene and its packages in PYSPARK_PYTHON before the session starts "
            "(`spark.pyspark.python` with spark-submit); a cluster can be sent Kleene with `kleene archive`",
        )


class RunInProgress(PipelineError):
    code, title = "KL712", "another run is writing there"


class UnfitSource(PipelineError):
    code, title = "KL713", "source does not fit its declaration"


class FileChanged(KleeneError):
    code, title = "KL714", "file changed while it was to be read"

    @classmethod
    def of(cls, path: str, what: str) -> FileChanged:
        return cls(
            f"{path} {what}",
            hint="it was listed when the query met the data frame: open the files again, and match again",
        )


# KL9xx: warnings ---------------------------------------------------------------------------------------------------


class AlwaysFalse(QueryWarning):
    code, title = "KL901", "condition is never true"


class AlwaysTrue(QueryWarning):
    code, title = "KL902", "condition is always true"


class Unreachable(QueryWarning):
    code, title = "KL903", "condition is never tested"


class AnyWithoutTypes(QueryWarning):
    code, title = "KL904", "condition on ANY without declared types"


class Exponential(QueryWarning):
    code, title = "KL905", "pattern may have exponentially many matches"


class NoSuchEvents(QueryWarning):
    code, title = "KL906", "no event is of this type"


class AbsentBranch(QueryWarning):
    code, title = "KL907", "alias that only one branch of `|` binds"


class WholeStream(QueryWarning):
    code, title = "KL908", "partition contiguity without a partition"
