// SPDX-License-Identifier: Apache-2.0
#include "cli/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// Limits far beyond real libraries. `doctor` runs as root and examines files of other users, which
// may be crafted to exhaust memory.
constexpr uint64_t kTableBytesMax = 64u << 20;
constexpr size_t kHeadersMax = 4096;
constexpr size_t kInterpreterBytesMax = 4096;
constexpr size_t kConstantBytesMax = 256;
constexpr size_t kVersionsMax = 4096;
// All names together may have as many bytes as one string table. Names may overlap in the table, so
// a small file could otherwise expand without limit.
constexpr uint64_t kNamesBytesMax = kTableBytesMax;

// Reads parts of a file within the limits. Fails with INVALID_ARGUMENT for an impossible part,
// otherwise as HostView::Read. Both arguments must outlive it.
class Reader {
 public:
  Reader(HostView& host, const std::string& path) : host_(host), path_(path) {}

  // Returns exactly `bytes` bytes from `offset` on.
  absl::StatusOr<std::string> Bytes(uint64_t offset, uint64_t bytes) {
    if (bytes > kTableBytesMax) return Damaged("a table is too large");
    ASSIGN_OR_RETURN(std::string data, host_.Read(path_, offset, bytes));
    if (data.size() != bytes) return Damaged("the file is truncated");
    return data;
  }
  // Returns `count` structures from `offset` on, copied because the file's bytes may be unaligned.
  template <typename T>
  absl::StatusOr<std::vector<T>> Table(uint64_t offset, uint64_t count) {
    if (count > kTableBytesMax / sizeof(T)) return Damaged("a table is too large");
    ASSIGN_OR_RETURN(const std::string data, Bytes(offset, count * sizeof(T)));
    std::vector<T> table(count);
    if (count != 0) std::memcpy(table.data(), data.data(), data.size());
    return table;
  }
  // Returns a name in a table of strings; "" if its offset is outside.
  absl::StatusOr<std::string> Name(const std::string& strings, uint64_t at) {
    if (at >= strings.size()) return "";
    const size_t bytes = std::min(strings.find('\0', at), strings.size()) - at;
    names_bytes_ += bytes;
    if (names_bytes_ > kNamesBytesMax) return Damaged("its string table is too large");
    return strings.substr(at, bytes);
  }
  // Returns the error for a file that violates the format.
  absl::Status Damaged(const char* why) const {
    return InvalidArgument("{} is not a valid ELF file: {}", path_, why);
  }

 private:
  HostView& host_;
  const std::string& path_;
  uint64_t names_bytes_ = 0;
};

// Appends the symbol versions of a SHT_GNU_verneed section. Its entries form two levels of linked
// lists of relative offsets, which may be cyclic in a crafted file, so both loops have limits.
absl::Status ReadVersions(Reader& reader, const Elf64_Shdr& section, const std::string& strings,
                          std::vector<std::string>& versions) {
  ASSIGN_OR_RETURN(const std::string data, reader.Bytes(section.sh_offset, section.sh_size));
  uint64_t at = 0;
  for (size_t need_count = 0; need_count < kVersionsMax; ++need_count) {
    Elf64_Verneed need;
    if (at + sizeof(need) > data.size()) return reader.Damaged("its version table is out of range");
    std::memcpy(&need, data.data() + at, sizeof(need));
    uint64_t aux_at = at + need.vn_aux;
    for (size_t i = 0; i < need.vn_cnt && versions.size() < kVersionsMax; ++i) {
      Elf64_Vernaux aux;
      if (aux_at + sizeof(aux) > data.size())
        return reader.Damaged("its version table is out of range");
      std::memcpy(&aux, data.data() + aux_at, sizeof(aux));
      ASSIGN_OR_RETURN(versions.emplace_back(), reader.Name(strings, aux.vna_name));
      if (aux.vna_next == 0) break;
      aux_at += aux.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  return absl::OkStatus();
}

// Reads the section headers, dynamic symbols and needed versions. A file without sections is valid.
absl::Status ReadSections(Reader& reader, const Elf64_Ehdr& header, ElfFile& elf) {
  if (header.e_shoff == 0 || header.e_shnum == 0) return absl::OkStatus();
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return reader.Damaged("invalid section headers");
  ASSIGN_OR_RETURN(
      const auto sections,
      reader.Table<Elf64_Shdr>(header.e_shoff, std::min<size_t>(header.e_shnum, kHeadersMax)));
  bool has_symbols = false;
  bool has_versions = false;
  for (const Elf64_Shdr& section : sections) {
    const bool is_symbols = section.sh_type == SHT_DYNSYM;
    if (!is_symbols && section.sh_type != SHT_GNU_verneed) continue;
    bool& has_one = is_symbols ? has_symbols : has_versions;
    // A file has one of each table; several would multiply the limits.
    if (std::exchange(has_one, true)) return reader.Damaged("duplicate dynamic or symbol tables");
    if (section.sh_link >= sections.size()) return reader.Damaged("a table has no string table");
    const Elf64_Shdr& linked = sections[section.sh_link];
    ASSIGN_OR_RETURN(const std::string strings, reader.Bytes(linked.sh_offset, linked.sh_size));
    if (!is_symbols) {
      RETURN_IF_ERROR(ReadVersions(reader, section, strings, elf.versions));
      continue;
    }
    ASSIGN_OR_RETURN(
        const auto symbols,
        reader.Table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym)));
    for (const Elf64_Sym& symbol : symbols) {
      // Undefined symbols are those that the file needs, not those that it provides.
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_name == 0) continue;
      ASSIGN_OR_RETURN(elf.defined.emplace_back(), reader.Name(strings, symbol.st_name));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size())
        continue;
      const Elf64_Shdr& holder = sections[symbol.st_shndx];
      if (symbol.st_value < holder.sh_addr) continue;
      // The address of the constant relative to its section, plus the section's offset, is the
      // offset in the file.
      elf.objects[elf.defined.back()] = symbol.st_value - holder.sh_addr + holder.sh_offset;
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool ElfFile::Defines(std::string_view symbol) const {
  return std::find(defined.begin(), defined.end(), symbol) != defined.end();
}

int MinorOfGlibc(std::string_view version) {
  if (!version.starts_with("2.")) return -1;
  int minor = -1;
  std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

int ElfFile::HighestGlibcMinor() const {
  constexpr std::string_view kPrefix = "GLIBC_";
  int highest = -1;
  for (const std::string& version : versions) {
    if (!version.starts_with(kPrefix)) continue;
    highest = std::max(highest, MinorOfGlibc(std::string_view(version).substr(kPrefix.size())));
  }
  return highest;
}

bool ElfFile::IsOfThisMachine() const {
#if defined(__x86_64__)
  return is_64_bit && machine == EM_X86_64;
#elif defined(__aarch64__)
  return is_64_bit && machine == EM_AARCH64;
#else
#error "neurontrace runs on x86-64 and arm64"
#endif
}

absl::StatusOr<ElfFile> ReadElf(HostView& host, const std::string& path) {
  Reader reader(host, path);
  // The header is read alone first, so that other files cost one small read.
  ASSIGN_OR_RETURN(const std::string start, host.Read(path, 0, sizeof(Elf64_Ehdr)));
  if (start.size() < EI_NIDENT || start.compare(0, SELFMAG, ELFMAG) != 0) {
    return InvalidArgument("{} is not an ELF file", path);
  }
  ElfFile elf;
  elf.is_64_bit = start[EI_CLASS] == ELFCLASS64;
  if (start[EI_DATA] != ELFDATA2LSB)
    return reader.Damaged("its byte order differs from this machine's");
  if (start.size() < sizeof(Elf64_Ehdr)) return reader.Damaged("the file is truncated");
  Elf64_Ehdr header;
  std::memcpy(&header, start.data(), sizeof(header));
  // This field has the same offset in 32-bit and 64-bit files.
  elf.machine = header.e_machine;
  elf.is_shared_object = header.e_type == ET_DYN;
  if (!elf.is_64_bit) return elf;
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) {
    return reader.Damaged("invalid program headers");
  }
  ASSIGN_OR_RETURN(
      const auto segments,
      reader.Table<Elf64_Phdr>(header.e_phoff, std::min<size_t>(header.e_phnum, kHeadersMax)));
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_INTERP) continue;
    if (segment.p_filesz > kInterpreterBytesMax) return reader.Damaged("invalid interpreter");
    ASSIGN_OR_RETURN(const std::string name, reader.Bytes(segment.p_offset, segment.p_filesz));
    elf.interpreter = name.substr(0, name.find('\0'));
  }
  RETURN_IF_ERROR(ReadSections(reader, header, elf));
  return elf;
}

absl::StatusOr<std::string> ReadElfText(HostView& host, const std::string& path,
                                        std::string_view symbol) {
  ASSIGN_OR_RETURN(const ElfFile elf, ReadElf(host, path));
  const auto object = elf.objects.find(std::string(symbol));
  if (object == elf.objects.end()) return NotFound("{} does not report its version", path);
  ASSIGN_OR_RETURN(const std::string text, host.Read(path, object->second, kConstantBytesMax));
  return text.substr(0, text.find('\0'));
}

}  // namespace neurontrace::cli
