# SPDX-License-Identifier: GPL-2.0-or-later
"""What values the parameters of a library's functions may have, and how large their arrays can become.

A guest chooses all numbers of a call, and the libraries trust many of them. So each number in a size has bounds in the
remarks, sizes are computed as intervals from these, and a function of numbers alone needs a word of somebody who has
looked at it.
"""
import functools

from pycparser import c_ast, c_parser

ARGS_MAX = 16 << 20   # QCU_LIB_ARGS_MAX and QCU_LIB_OUTS_MAX of include/qculib.h

# The greatest results of the functions that sizes call (include/qculib_cublas.h).
RESULTS = {"qcu_cublas_size": 16, "qcu_cublas_scalar": 16}
# And those that only the guest has: a descriptor tells it the type. The mirror has more room than any type takes.
GUESTS = {"qcul_cudnn_scalar": 8, "qcul_cudnn_element": 8, "qcul_cudnn_type_size": 8, "qcul_cusparse_scalar": 16}

BASIC = {"char": 1, "short": 2, "int": 4, "long": 8, "float": 4, "double": 8}


class Wrong(Exception):
    """Something in the remarks or headers that the generator does not understand."""


def behind(node, types):
    """The type behind all typedefs."""
    while isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.IdentifierType) and \
            node.type.names[0] in types:
        node = types[node.type.names[0]]
    return node


def is_enum(p):
    return isinstance(getattr(p.resolved(), "type", None), c_ast.Enum)


def is_real(p):
    return getattr(getattr(p.resolved(), "type", None), "names", None) in (["float"], ["double"])


def is_complex(p):
    return p.spelled() in ("cuComplex", "cuDoubleComplex")


def is_unsigned(p):
    return "unsigned" in getattr(getattr(p.resolved(), "type", None), "names", [])


def room_of(node, types):
    """How many bytes a type has at most."""
    node = behind(node, types)
    if isinstance(node, c_ast.PtrDecl):
        return 8
    if isinstance(node, c_ast.ArrayDecl):
        return Sizes({}, types, None).of(node.dim)[1] * room_of(node.type, types)
    if isinstance(node.type, c_ast.Enum):
        return 4
    if isinstance(node.type, c_ast.Struct):
        inner = node.type if node.type.decls else types.get("struct %s" % node.type.name)
        if inner:
            return (sum(-(-room_of(d.type, types) // 4) * 4 for d in inner.decls) + 7) // 8 * 8
    names = getattr(node.type, "names", None)
    if not names or "void" in names:
        raise Wrong("the size of a type is not known")
    return max(BASIC.get(name, 4 if name == "unsigned" else 0) for name in names)


class Sizes:
    """Computes the least and the greatest value of an expression from the bounds of what it names."""

    def __init__(self, bounds, types, function):
        self.bounds, self.types, self.function = bounds, types, function

    def text(self, size):
        return self.of(parsed(size))

    def of(self, node):
        if isinstance(node, c_ast.Constant):
            return (int(node.value.rstrip("uUlL"), 0),) * 2
        if isinstance(node, c_ast.Cast):
            return self.of(node.expr)
        if isinstance(node, c_ast.ID):
            if not self.bounds.get(node.name):
                raise Wrong("%s has no bound" % node.name)
            return self.bounds[node.name]
        if isinstance(node, c_ast.UnaryOp) and node.op == "sizeof":
            return (self.room(node.expr),) * 2
        if isinstance(node, c_ast.FuncCall) and node.name.name in {**RESULTS, **GUESTS}:
            return (0, {**RESULTS, **GUESTS}[node.name.name])
        if isinstance(node, c_ast.BinaryOp) and node.op in ("+", "-", "*"):
            (a, b), (c, d) = self.of(node.left), self.of(node.right)
            all_of = {"+": [a + c, b + d], "-": [a - d, b - c], "*": [a * c, a * d, b * c, b * d]}[node.op]
            return min(all_of), max(all_of)
        raise Wrong("a size is neither a sum nor a product of numbers")

    def room(self, node):
        if isinstance(node, c_ast.UnaryOp) and node.op == "*" and isinstance(node.expr, c_ast.ID):
            for p in self.function.params:
                if p.name == node.expr.name and p.pointer() is not None:
                    return room_of(p.pointer(), self.types)
        raise Wrong("sizeof is not of what a parameter points to")


# One for all: a new one reads its tables again, which takes longer than to parse a size.
PARSER = c_parser.CParser()


@functools.cache
def parsed(text):
    unit = PARSER.parse("typedef unsigned long uint64_t; int size = %s;" % text)
    return unit.ext[-1].init


def check_sizes(function, types):
    """The arrays of a call are never larger than a message, and no size of theirs wraps."""
    bounds = {p.name: p.bound for p in function.params if p.kind == "value"}
    sums = {"in": 0, "out": 0}
    for p in function.params:
        if p.kind not in ("in", "out", "inout"):
            continue
        try:
            least, greatest = Sizes(bounds, types, function).text(p.size)
        except Wrong as error:
            raise Wrong("%s: the size of %s: %s" % (function.name, p.name, error)) from error
        if least < 0:
            raise Wrong("%s: the size of %s may be negative" % (function.name, p.name))
        if p.within and Sizes({}, types, function).text(p.within)[0] < greatest:
            raise Wrong("%s: %s may be larger than what it is within" % (function.name, p.name))
        for way in sums:
            if way in p.kind:
                sums[way] += greatest
                if sums[way] > ARGS_MAX:
                    raise Wrong("%s: with %s the call may have %d bytes, and a message %d" % (
                        function.name, p.name, sums[way], ARGS_MAX))


def varies(p):
    """Does the size of a scalar depend on a parameter, in a way that the mirror can compute?"""
    return any(name + "(" in (p.size or "") for name in RESULTS)


def check_scalars(function, types, room):
    """A scalar has room, if the mirror does not check it when it knows the type."""
    for p in function.params:
        if p.kind not in ("scalar", "result", "both"):
            continue
        greatest = Sizes({}, types, function).text(p.size or "sizeof(*%s)" % p.name)[1]
        if greatest > room(p) and not varies(p):
            raise Wrong("%s: %s takes %d bytes, and has room for %d" % (function.name, p.name, greatest, room(p)))


def check_bounds(function):
    for p in function.params:
        if not p.bound:
            continue
        least, greatest = p.bound
        if p.kind != "value" or is_complex(p):
            raise Wrong("%s: %s is no number that can have a bound" % (function.name, p.name))
        if least > greatest or least < (0 if is_unsigned(p) else -1 << 63) or greatest >= 1 << 63:
            raise Wrong("%s: %s cannot have these bounds" % (function.name, p.name))


NUMBERS = ("value", "handle", "bare", "stream", "descriptor", "counted", "second")


def only_numbers(function):
    """Has it no parameters but numbers, beside its objects? Those that are an enumeration or real do not count."""
    return all(p.kind in NUMBERS for p in function.params) and any(
        p.kind == "value" and not is_enum(p) and not is_real(p) for p in function.params)


def check_numbers(function, looked_at):
    """A number may make the library allocate or start threads without limit."""
    if looked_at or not only_numbers(function):
        return
    for p in function.params:
        if p.kind == "value" and not is_enum(p) and not is_real(p) and not p.bound:
            raise Wrong("%s: has only numbers; %s needs a bound, or the function a line 'numbers'" % (
                function.name, p.name))
