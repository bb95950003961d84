# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a C++ file with the files of the folder PAGE, which the assembler includes unread: a
# compiler takes seconds for an array of this size.
set(files page.js style.css index.html)
set(code "// Made by cmake/embed_page.cmake.\n#include \"lib/web/built_in_assets.h\"\n")
set(rows "")
foreach(file IN LISTS files)
  string(MAKE_C_IDENTIFIER ${file} name)
  # Read-only data of this program; the end is a symbol of its own, as a size would need an expression.
  string(APPEND code "asm(\".section .rodata\\nneurontrace_${name}:\\n.incbin \\\"${PAGE}/${file}.gz\\\"\\n\"
    \"neurontrace_${name}_end:\\n.byte 0\\n.previous\\n\");
extern \"C\" const char neurontrace_${name}[];
extern \"C\" const char neurontrace_${name}_end[];\n")
  string(APPEND rows "      {\"/${file}\", {neurontrace_${name}, neurontrace_${name}_end}},\n")
endforeach()
string(APPEND code "std::span<const neurontrace::BuiltInAsset> neurontrace::BuiltInAssets() {
  static const BuiltInAsset kFiles[] = {\n${rows}  };\n  return kFiles;\n}\n")
file(WRITE ${OUT} "${code}")
