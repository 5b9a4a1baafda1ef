# SPDX-License-Identifier: GPL-2.0-or-later
"""A library under another name: for each function a jump into the shim of CUDA 13. The name that it had in CUDA 12:
remarks/NAME.cuda12 says what differs (docs/programs/cuda12.md has the words). The parts of which NVIDIA's consists."""
import fnmatch
import os

from domains import Wrong


def path_of(lib):
    return lib.remarks.path[:-len("remarks")] + "cuda12"


class Older:
    """remarks/NAME.cuda12, beside the library that it is compared with."""

    def __init__(self, lib):
        self.lib = lib
        self.path = path_of(lib)
        self.soname, self.status = None, None
        self.without, self.only, self.drops, self.old = [], [], [], {}
        self.unknown, self.gone, self.answers = {}, {}, {}
        with open(self.path) as file:
            for number, line in enumerate(file, 1):
                words = line.split("#")[0].split()
                try:
                    if words:
                        self.take_line(words[0], words[1:])
                except (IndexError, ValueError, Wrong) as error:
                    raise Wrong("%s:%d: %s: %s" % (self.path, number, line.strip(), error)) from error
        if not self.soname:
            raise Wrong("%s: there is no line 'soname'" % self.path)
        self.by_name = {f.name: f for _, f in lib.functions if f}
        for name, newer in list(self.old.items()):
            if newer + "_bufferSize" in self.by_name:
                self.old[name + "_bufferSize"] = newer + "_bufferSize"
        self.check_names()

    def take_line(self, word, rest):
        if word == "soname" and len(rest) == 1:
            self.soname = rest[0]
        elif word in ("without", "only", "drops") and rest:
            getattr(self, word).extend(rest)
        elif word == "old" and len(rest) == 2:
            self.old[rest[0]] = rest[1]
        elif word in ("unknown", "gone") and len(rest) > 1:
            getattr(self, word).setdefault(rest[0], []).extend(int(value, 0) for value in rest[1:])
        elif word == "status" and len(rest) == 3:
            self.status = (int(rest[0], 0), int(rest[1], 0), rest[2])
        elif word == "answer" and len(rest) in (2, 4):
            self.answers[rest[0]] = [int(value, 0) for value in rest[1:]]
        else:
            raise Wrong("unknown word, or wrong number of words")

    def check_names(self):
        """Each line is about something that CUDA 13 has, or, for what only 12 has, has not."""
        names = [name for name, _ in self.lib.functions]
        types = {p.spelled() for f in self.by_name.values() for p in f.params}
        for pattern in self.without:
            if not fnmatch.filter(names, pattern):
                raise Wrong("%s: without %s: there is no such function" % (self.path, pattern))
        for name in self.only + list(self.old):
            if name in names:
                raise Wrong("%s: %s: CUDA 13 has it, too" % (self.path, name))
        for name in list(self.old.values()) + list(self.answers):
            if name not in self.by_name:
                raise Wrong("%s: %s: there is no such function" % (self.path, name))
        for kind in list(self.unknown) + list(self.gone):
            if kind not in types:
                raise Wrong("%s: %s: no function has such a parameter" % (self.path, kind))

    def names(self):
        """All functions that the older library exports."""
        kept = [name for name, _ in self.lib.functions
                if name not in self.lib.later and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.without)]
        return sorted(kept + self.only + list(self.old))

    def unserved(self):
        return [name for name in self.names()
                if name not in list(self.old) + list(self.answers) and (name not in self.by_name or self.by_name[name].how == "none")]

    def served(self):
        unserved = set(self.unserved())
        return [name for name in self.names() if name not in unserved]

    def is_dropped(self, name, p):
        return name in self.old and p.name in self.drops

    def checks(self, f):
        """Lines of C that refuse what CUDA 12 does not know, or CUDA 13 not any more."""
        out = []
        for p in f.params:
            for value in self.unknown.get(p.spelled(), []):
                out.append("\tif ((int)%s == %d)\n\t\treturn %s;" % (p.name, value, self.lib.remarks["invalid"]))
            for value in self.gone.get(p.spelled(), []):
                out.append("\tif ((int)%s == %d) {\n\t\tstatic atomic_flag said = ATOMIC_FLAG_INIT;\n" % (p.name, value))
                out.append("\t\treturn (%s)qcul_lib_unserved(&this_library, \"%s with %s %d\", &said);\n\t}" % (
                    f.returns, f.name, p.name, value))
        return out

    def is_jump(self, name):
        f = self.by_name[self.old.get(name, name)]
        changed = self.status and f.returns == self.lib.remarks["status"]
        return not (changed or name in self.answers or self.checks(f) or any(self.is_dropped(name, p) for p in f.params))


def points_to(p):
    """The name of the type that it points to: "int", "void"; "" for no pointer, or one to a structure."""
    names = getattr(getattr(p.pointer(), "type", None), "names", [])
    return " ".join(names)


def declare(older, name):
    f = older.by_name[older.old.get(name, name)]
    kept = [p.declared for p in f.params if not older.is_dropped(name, p)]
    return "%s %s(%s)" % (f.returns, name, ", ".join(kept) or "void")


def print_answer(older, name):
    """A number, or the three parts of a version: without a handle, as natively."""
    f, values = older.by_name[name], older.answers[name]
    to = [p for p in f.params if points_to(p)]
    print("\n%s\n{" % declare(older, name))
    if not to:
        print("\treturn %d;\n}" % values[0])
        return
    invalid = older.lib.remarks["invalid"]
    for p in f.params:
        if p.pointer() is not None and p not in to:
            print("\t(void)%s;" % p.name)
    if len(values) == 3:
        print("\tconst int parts[] = {%d, %d, %d};\n" % tuple(values))
        print("\tif ((unsigned int)type > 2)\n\t\treturn %s;" % invalid)
    print("\tif (!%s)\n\t\treturn %s;" % (to[0].name, invalid))
    print("\t*%s = %s;\n\treturn (%s)0;\n}" % (to[0].name, "parts[type]" if len(values) == 3 else values[0], f.returns))


def print_checked(older, name):
    """A function that looks at its parameters or its status, and calls that of CUDA 13."""
    f = older.by_name[older.old.get(name, name)]
    lines, arguments = older.checks(f), []
    for p in f.params:
        if not older.is_dropped(name, p):
            arguments.append(p.name)
        elif points_to(p) in ("", "void"):
            arguments.append("NULL" if points_to(p) else "0")
        else:
            lines.insert(0, "\t%s %s;\n" % (points_to(p), p.name))
            arguments.append("&" + p.name)
    print("\nextern __typeof__(%s) in13_%s;\n__asm__(\".symver in13_%s, %s@%s\");" % (
        f.name, name, name, f.name, older.lib.remarks["soname"]))
    print("%s\n{" % declare(older, name))
    call = "in13_%s(%s)" % (name, ", ".join(arguments))
    print("\n".join(lines + ["\treturn %s;\n}" % ("old_status(%s)" % call if older.status else call)]))


def write_functions(lib):
    older, r = Older(lib), lib.remarks
    print("/* SPDX-License-Identifier: LGPL-2.1-or-later */\n/* %s. Made by scripts/shims/generate from NVIDIA's headers, %s and %s; "
          "do not edit. */" % (older.soname, r.path, older.path))
    print("#include \"qcu-library/shims/%s.h\"\n" % r["library"])
    print("static const struct qcul_lib this_library = {\n\t.name = \"%s\",\n\t.soname = \"%s\",\n\t.unserved = %s,\n};" % (
        r["library"], older.soname, r["unserved"]))
    if older.status:
        print("\nstatic %s old_status(%s status)\n{" % (r["status"], r["status"]))
        print("\treturn (int)status >= %d && (int)status <= %d ? %s : status;\n}" % older.status)
    print("\n".join(["\n#pragma GCC visibility push(default)"] + lib.prototypes))
    jumps = [name for name in older.served() if older.is_jump(name)]
    for name in older.served():
        if name in older.answers:
            print_answer(older, name)
        elif name not in jumps:
            print_checked(older, name)
    # The headers may declare these, with their parameters.
    print("\n#define UNSERVED(name) \\\n\tint unserved_##name(void) __asm__(#name); \\\n\tint unserved_##name(void) \\")
    print("\t{ \\\n\t\tstatic atomic_flag said = ATOMIC_FLAG_INIT; \\")
    print("\t\treturn qcul_lib_unserved(&this_library, #name, &said); \\\n\t}")
    print("\n".join("UNSERVED(%s)" % name for name in older.unserved()))
    define_jump(lib)
    print("\n".join("JUMP(%s, %s)" % (name, older.old.get(name, name)) for name in jumps))


def define_jump(lib):
    print("\n#define JUMP(name, to) \\\n\t__asm__(\".symver to13_\" #name \", \" #to \"@%s\\n\" \\" % lib.remarks["soname"])
    print("\t\t\".pushsection .text\\n.globl \" #name \"\\n.type \" #name \", @function\\n\" \\")
    print("\t\t#name \": jmp *to13_\" #name \"@GOTPCREL(%rip)\\n.popsection\");")


def write_parts(lib):
    """Jumps for programs that are linked with a part of the library."""
    print("/* SPDX-License-Identifier: LGPL-2.1-or-later */\n/* The parts of %s. Made by scripts/shims/generate from %s; "
          "do not edit. */" % (lib.remarks["soname"], lib.remarks.path))
    define_jump(lib)
    for part, names in lib.parts.items():
        print("\n".join(["\n#ifdef PART_%s" % part] + ["JUMP(%s, %s)" % (name, name) for name in names] + ["#endif"]))


def write_declarations(lib):
    """For the tests: what must be declared so in the headers of CUDA 12."""
    older = Older(lib)
    print("\n".join("#include <%s>" % h for h in lib.remarks.headers))
    for name in older.served():
        if older.old.get(name, name) not in lib.remarks.like:
            print("%s;" % declare(older, name))


def table(lib):
    """For the docs: how this library differs from that of CUDA 13. None: there is no older one."""
    if not os.path.exists(path_of(lib)):
        return None
    older = Older(lib)
    served, names = older.served(), older.names()
    new = [name for name, _ in lib.functions if name not in names]
    checked = [name for name in served if not older.is_jump(name) and name not in older.answers and name not in older.old]
    told = [("%d functions: %d served, %d of them by a jump to the same function of `%s`; %d not served." % (
        len(names), len(served), sum(older.is_jump(name) for name in served), lib.remarks["soname"],
        len(older.unserved())), [])]
    told += [("Not there", new), ("Functions that only CUDA 12 has", sorted(older.old)),
             ("Functions that only CUDA 12 has, not served", sorted(older.only)), ("Answers of CUDA 12", sorted(older.answers)),
             ("Values or status of CUDA 12", checked)]
    return older.soname, told
