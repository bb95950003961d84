// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace neurontrace::cli {

// An ELF file of this machine, as small as can be, with the parts that ReadElf looks at.
struct FakeElf {
  std::string interpreter;            // empty: a static program
  std::vector<std::string> symbols;   // that it defines
  std::vector<std::string> versions;  // of libc.so.6 that it needs
  std::string version_constant;       // of the tap; empty: it has none
#if defined(__aarch64__)
  uint16_t machine = EM_AARCH64;
#else
  uint16_t machine = EM_X86_64;
#endif

  std::string Bytes() const {
    std::string strings(1, '\0');
    const auto put = [&strings](const std::string& text) {
      const auto at = static_cast<uint32_t>(strings.size());
      strings += text + '\0';
      return at;
    };
    std::string symbol_table(sizeof(Elf64_Sym), '\0');
    for (const std::string& name : symbols) {
      Elf64_Sym symbol{.st_name = put(name)};
      symbol.st_shndx = 1;
      Append(symbol_table, symbol);
    }
    if (!version_constant.empty()) {
      Elf64_Sym symbol{.st_name = put("neurontrace_tap_version")};
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
      symbol.st_shndx = 1;  // it stands among the strings, which are at address 0
      symbol.st_value = put(version_constant);
      Append(symbol_table, symbol);
    }
    std::string needs;
    if (!versions.empty()) {
      Append(needs, Elf64_Verneed{.vn_version = 1,
                                  .vn_cnt = static_cast<uint16_t>(versions.size()),
                                  .vn_file = put("libc.so.6"),
                                  .vn_aux = sizeof(Elf64_Verneed),
                                  .vn_next = 0});
    }
    for (size_t i = 0; i < versions.size(); ++i) {
      const bool is_last = i + 1 == versions.size();
      Append(needs, Elf64_Vernaux{.vna_hash = 0,
                                  .vna_flags = 0,
                                  .vna_other = 0,
                                  .vna_name = put(versions[i]),
                                  .vna_next = is_last ? 0u : uint32_t{sizeof(Elf64_Vernaux)}});
    }
    return Assemble(strings, symbol_table, needs);
  }

 private:
  template <typename T>
  static void Append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string Assemble(const std::string& strings, const std::string& symbol_table,
                       const std::string& needs) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = interpreter.empty() ? 0 : 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 4;
    const uint64_t interpreter_at = sizeof(header) + header.e_phnum * sizeof(Elf64_Phdr);
    const uint64_t interpreter_bytes = interpreter.empty() ? 0 : interpreter.size() + 1;
    const uint64_t strings_at = interpreter_at + interpreter_bytes;
    const uint64_t symbols_at = strings_at + strings.size();
    const uint64_t needs_at = symbols_at + symbol_table.size();
    header.e_shoff = needs_at + needs.size();
    std::string out;
    Append(out, header);
    if (!interpreter.empty()) {
      Elf64_Phdr segment{};
      segment.p_type = PT_INTERP;
      segment.p_offset = interpreter_at;
      segment.p_filesz = interpreter_bytes;
      Append(out, segment);
      out += interpreter + '\0';
    }
    out += strings + symbol_table + needs;
    Append(out, Section(SHT_NULL, 0, 0));
    Append(out, Section(SHT_STRTAB, strings_at, strings.size()));
    Append(out, Section(SHT_DYNSYM, symbols_at, symbol_table.size()));
    Append(out, Section(needs.empty() ? SHT_NULL : SHT_GNU_verneed, needs_at, needs.size()));
    return out;
  }

  static Elf64_Shdr Section(uint32_t type, uint64_t offset, uint64_t bytes) {
    Elf64_Shdr section{};
    section.sh_type = type;
    section.sh_offset = offset;
    section.sh_size = bytes;
    section.sh_link = 1;  // the strings
    return section;
  }
};

}  // namespace neurontrace::cli
