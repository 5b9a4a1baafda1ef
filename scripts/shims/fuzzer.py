# SPDX-License-Identifier: GPL-2.0-or-later
"""What the fuzzer of libraries sends (tests/fuzz/libs): for each function that is served, a C function that
packs a random call, parameter by parameter, as the guest's shim would."""
import re

from pycparser import c_ast, c_generator

from domains import is_complex


def enumerators(p):
    """The names of the values of a parameter whose type is an enumeration."""
    kind = getattr(p.resolved(), "type", None)
    if isinstance(kind, c_ast.Enum) and kind.values:
        return [e.name for e in kind.values.enumerators]
    return []


def c_type(p):
    return p.spelled() or "int"


def is_real(p):
    return p.spelled() in ("float", "double")


def element(p):
    """The size of what a pointer points to, and whether that is a real number."""
    inner = p.pointer()
    names = inner.type.names if isinstance(inner, c_ast.TypeDecl) and isinstance(inner.type, c_ast.IdentifierType) else []
    if names in ([], ["void"], ["char"]):
        return "1", "false"
    shown = c_generator.CGenerator().visit(c_ast.Typename(None, [], None, c_ast.TypeDecl(None, [], None, inner.type)))
    return "sizeof(%s)" % shown, "true" if names in (["float"], ["double"]) else "false"


def choose_value(p, remarks):
    """An expression for the word of a number."""
    bits = "8 * sizeof(%s)" % c_type(p)
    bound = getattr(p, "bound", None)
    if is_real(p):
        return "fuzz_real(f)"
    if bound:
        return "fuzz_bounded(f, %s, %dll, %dll)" % ((bits,) + tuple(bound))
    if enumerators(p):
        return "fuzz_enum(f, fuzz_%s_%s, %d)" % (remarks["library"], c_type(p), len(enumerators(p)))
    return "fuzz_number(f, %s)" % bits


def pack(p, typed_size, room):
    """The statement that packs a parameter, or None for what does not travel."""
    kind = p.kind
    if is_complex(p):
        return "fuzz_word(f, fuzz_real(f));\n\tfuzz_word(f, fuzz_real(f));"
    if kind == "value":
        return "fuzz_word(f, %s_word);" % p.name
    if kind == "device":
        to = p.pointer()
        return "fuzz_device(f, %s);" % ("true" if isinstance(to, c_ast.PtrDecl) else "false")
    if kind in ("handle", "bare"):
        return "fuzz_%s(f, KIND_%s);" % ("bare" if kind == "bare" else "object", p.spelled())
    if kind in ("descriptor", "second"):
        return "fuzz_%s(f, KIND_%s);" % (kind, p.spelled())
    if kind == "counted":
        return "fuzz_descriptor(f, KIND_%s);\n\tfuzz_out(f, 3 * sizeof(int64_t));" % p.spelled()
    if kind in ("in", "inout"):
        return "fuzz_%s(f, %s, %s, %s);" % ((kind, typed_size(p)) + element(p))
    if kind == "out":
        return "fuzz_out(f, %s);" % typed_size(p)
    if kind == "text":
        return "fuzz_text(f);"
    if kind == "either":
        return "fuzz_either(f, %s, %s);" % (p.size, element(p)[0])
    way = {"scalar": "LIB_IN", "result": "LIB_OUT", "both": "LIB_IN | LIB_OUT"}.get(kind)
    if way:
        size, real = element(p)
        return "fuzz_scalar(f, %d, %s, %s, %s);" % (room(p), size, real, way)
    return None


def pack_structure(name):
    """The structure of a matrix, or an order of its rows, in a call that the mirror looks at by hand; else None."""
    matrix = re.fullmatch(r"h_csr(RowPtr|ColInd)(\w)", name)
    if matrix:
        return "fuzz_csr(f, n, nnz%s, %s);" % (matrix[2], "true" if matrix[1] == "ColInd" else "false")
    return "fuzz_csr(f, n, n, true);" if name in ("h_P", "h_Q") else None


def write(lib, typed_size, room):
    name = lib.remarks["library"]
    print("#include \"qcu-device/libs/%s.h\"\n#include \"tests/fuzz/libs/pack.h\"\n" % name)
    tables = {}
    for f in lib.served():
        for p in f.params:
            if enumerators(p):
                tables[c_type(p)] = enumerators(p)
    for enum, names in sorted(tables.items()):
        print("const uint64_t fuzz_%s_%s[] = {%s};" % (name, enum, ", ".join("(uint64_t)" + n for n in names)))
        print("const unsigned int fuzz_%s_%s_count = %d;" % (name, enum, len(names)))
    for f in lib.generated():
        print("\nstatic void pack_%s(struct fuzz_call *f)\n{" % f.name)
        for p in f.params:
            if p.kind == "value" and not is_complex(p):
                print("\tconst uint64_t %s_word = %s;" % (p.name, choose_value(p, lib.remarks)))
                if not is_real(p):
                    print("\tconst %s %s __attribute__((unused)) = (%s)%s_word;" % (c_type(p), p.name, c_type(p), p.name))
        print("\n\t(void)f;")
        for p in f.params:
            statement = pack(p, typed_size, room)
            if f.csr and p.kind == "in" and p.name in f.csr[:2]:
                statement = "fuzz_csr(f, %s, %s, %s);" % (f.csr[3], f.csr[4], "true" if p.name == f.csr[1] else "false")
            if f.through and p.kind == "in":
                statement = pack_structure(p.name) or statement
            if statement:
                print("\t" + statement)
        print("}")
    for f in lib.served():
        if f.how == "hand":
            print("void fuzz_hand_%s(struct fuzz_call *f);" % f.name)
    print("\nstatic const struct fuzz_function functions[] = {")
    for f in lib.served():
        handle = [p for p in f.params if p.spelled() in lib.remarks.handles and p.kind != "bare"]
        second = [p for p in f.params if p.spelled() in lib.remarks.seconds]
        print("\t{%s_%s, %s, %s}," % ("fuzz_hand" if f.how == "hand" else "pack", f.name,
                                     "KIND_" + handle[0].spelled() if handle else "0",
                                     "KIND_" + second[0].spelled() if second else "0"))
    print("};\n\nconst struct fuzz_library fuzz_%s = {&lib_%s, %s, functions};" % (name, name, lib.remarks["number"]))
