# SPDX-License-Identifier: GPL-2.0-or-later
"""What NVIDIA's headers declare, and declarations that are made from these."""
import pickle
import subprocess

from pycparser import c_ast

from domains import PARSER, Wrong


def read_headers(remarks, include):
    """The declarations of all functions that the headers declare, by name; the typedefs, and the structures."""
    text = "".join("#include <%s>\n" % h for h in remarks.headers)
    command = ["gcc", "-E", "-P", "-x", "c", "-"]
    for directory in include:
        command += ["-I", directory]
    for name in ("__attribute__(x)", "__asm__(x)", "__extension__", "__inline__", "__inline", "__restrict"):
        command.append("-D%s=" % name)
    command += ["-D__builtin_va_list=int"] + ["-D_Float%s=double" % n for n in "32 64 128 32x 64x".split()]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Wrong("the headers cannot be read: " + done.stderr)
    functions, types = {}, {}
    for node in PARSER.parse(done.stdout).ext:
        if isinstance(node, c_ast.Typedef):
            types[node.name] = node.type
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            functions[node.name] = node
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Struct) and node.type.decls:
            types["struct %s" % node.type.name] = node.type
    return functions, types


class Retype(c_ast.NodeVisitor):
    """Replaces float in a declaration."""

    def __init__(self, to):
        self.to = to.split()

    def visit_IdentifierType(self, node):
        if node.names == ["float"] and self.to:
            node.names = self.to


class Rename(c_ast.NodeVisitor):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit_TypeDecl(self, node):
        if node.declname == self.old:
            node.declname = self.new


def copy_of(decl, name, to):
    """The declaration under another name, with another type for float."""
    copy = pickle.loads(pickle.dumps(decl))
    Rename(copy.name, name).visit(copy)
    copy.name = name
    Retype(to).visit(copy)
    return copy
