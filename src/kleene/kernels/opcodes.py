"""The numbers that programs are made of: states of values, instructions, comparisons, aggregate functions.

Plain integers, so that compiled code holds them as constants and a planner can use them without a compiler.
"""

from __future__ import annotations

# States of a value on the stack. Arithmetic on several takes the greatest: missing spreads before undefined, undefined
# before NULL.
VALUE = 0
NULL = 1
UNDEFINED = 2
MISSING = 3

# An instruction is its opcode and three operands.
WIDTH = 4

# Push a value.                 operands
LOAD_INT = 0  #                 slot of the identifier, place in the integers, column
LOAD_REAL = 1  #                slot of the identifier, place in the reals, column
LOAD_STATE = 2  #               slot of the identifier, -, column: only whether there is a value
GROUP_INT = 3  #                slot of the aggregate
GROUP_REAL = 4  #               slot of the aggregate
PUSH_INT = 5  #                 place in the program's integers
PUSH_REAL = 6  #                place in the program's reals
PUSH_NULL = 7

# Change the value on top.
TO_REAL = 8
TO_RANK = 9  #                  a string's code becomes its place in the order of all strings
SETTLE = 10  #                  what is undefined becomes NULL

# Take two values, push one.
ADD_REAL = 11
SUBTRACT_REAL = 12
MULTIPLY_REAL = 13
DIVIDE_REAL = 14
MODULO_REAL = 15
ADD_INT = 16
SUBTRACT_INT = 17
MULTIPLY_INT = 18
MODULO_INT = 19
ADD_TIME = 20  #                nanoseconds a step of the left value, of the right one; the result is in nanoseconds
SUBTRACT_TIME = 21  #           as above
ELAPSED = 22  #                 start and end: how many units a step is, how many the last tick; at most all that fit

# Literals: take their values; when true, go on at the target (the next clause).
COMPARE_INT = 23  #             target, comparison
COMPARE_REAL = 24  #            target, comparison
COMPARE_INT_REAL = 25  #        target, comparison; exact, whatever the size of the integer
COMPARE_TIME = 26  #            target, comparison, how many right steps a left one is (negative: the other way)
IS_NULL = 27  #                 target, 1 for IS NOT NULL
TEST_STRING = 28  #             target, 1 for "not", place in the program's integers of the number of the test
AMONG_INTS = (
    29  #              target, 1 for "not", place in the program's integers of how many there are; then they, sorted
)

# No literal of the clause was true.
FAIL = 30

# A comparison is the set of outcomes that it accepts.
LESS = 1
EQUAL = 2
GREATER = 4

# What an aggregate does with one more event. `AGREED` is the value that all events which have the attribute agree on.
COUNT_EVENTS = 0
COUNT = 1
SUM = 2
MIN = 3
MAX = 4
FIRST = 5
LAST = 6
AGREED = 7
# The value of one event by its number, which is added to this: `NTH + 6` keeps that of the sixth.
NTH = 8

# The kind of value that an aggregate is over.
INTS = 0
REALS = 1
STRINGS = 2
