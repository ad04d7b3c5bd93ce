"""Removes copies of variables before a kernel is compiled.

Numba copies a variable wherever it is read, and into each step that it is handed to (`jit.step`). For a number that
costs nothing; for a named tuple of twenty arrays it is hundreds of instructions. LLVM removes them all, which took as
long as the rest of the automaton's kernel.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numba
from numba.core import ir, postproc
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, replace_vars
from numba.core.untyped_passes import ReconstructSSA

# The versions of Numba with which all kernels were compiled and tested.
TRIED = ("0.68.",)


@register_pass(mutates_CFG=False, analysis_only=False)
class LeaveOutCopies(FunctionPass):  # type: ignore[misc]
    """Reads a variable in place of its copies: each is assigned once here, so that both are the same throughout.

    A phi of SSA, which stands for several variables, is not read in place of its copies: Numba assigns it in each block
    before it, where a copy still has the former value. It does so as soon as it has what it assigns, so that a copy for
    which a phi stands is kept, too: of `newer = node; node = following` the first would read what the second says.
    """

    _name = "kleene_leave_out_copies"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        assigned = [each for block in blocks.values() for each in block.body if isinstance(each, ir.Assign)]
        times = Counter(each.target.name for each in assigned)
        phis = {
            each.target.name: each.value.incoming_values
            for each in assigned
            if isinstance(each.value, ir.Expr) and each.value.op == "phi"
        }
        merged = {each.name for values in phis.values() for each in values if isinstance(each, ir.Var)}
        copied = {
            each.target.name: each.value
            for each in assigned
            if isinstance(each.value, ir.Var)
            and times[each.target.name] == times[each.value.name] == 1
            and each.value.name not in phis
            and each.target.name not in merged
        }
        if not copied:
            return False
        for block in blocks.values():
            block.body = [
                each for each in block.body if not (isinstance(each, ir.Assign) and each.target.name in copied)
            ]
        replace_vars(blocks, {name: _origin(copy, copied) for name, copy in copied.items()})
        state.func_ir._definitions = build_definitions(blocks)
        postproc.PostProcessor(state.func_ir).run(emit_dels=False)
        return True


def _origin(variable: Any, copied: dict[str, Any]) -> Any:
    while variable.name in copied:
        variable = copied[variable.name]
    return variable


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler, which leaves out copies; unchanged for versions of Numba that this was not tried with.

    Passes are no public part of Numba. Without this one kernels are the same, and only take longer to compile.
    """

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if numba.__version__.startswith(TRIED):
            passes.add_pass_after(LeaveOutCopies, ReconstructSSA)
        passes.finalize()
        return [passes]
