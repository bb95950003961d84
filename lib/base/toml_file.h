// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Every file that people write is TOML 1.0 (https://toml.io/en/v1.0.0): options of the daemons and
// of the command, access rules, rules of triggers. This is its only reader. Pure.
namespace neurontrace {

inline constexpr size_t kTomlLineBytesMax = 4'096;
inline constexpr size_t kTomlDepthMax = 8;      // of tables and arrays within each other
inline constexpr size_t kTomlProblemsMax = 32;  // reported for one file; further ones are counted

enum class TomlKind : uint8_t { kString, kInteger, kFloat, kBoolean, kOther, kArray, kTable };

// A value of a file and its place.
struct TomlNode {
  TomlKind kind = TomlKind::kTable;
  std::string key;  // empty: an element of an array
  uint32_t line = 0;
  uint32_t column = 0;             // both from 1; of the key, if there is one
  std::string text;                // of a scalar, as it is typed on a command line
  std::vector<TomlNode> children;  // elements, or members in the order of the file

  bool is_scalar() const { return kind < TomlKind::kOther; }
};

enum class TomlSections : uint8_t { kAreNames, kNest };

// Returns the table that the file is. Fails with INVALID_ARGUMENT "PATH:LINE:COLUMN: WORDS" if the
// text is not TOML or exceeds a limit. If it is in the INI form that other programs use, the words
// show the place as TOML, where a section [a b] is ["a b"], or [a.b] with kNest.
absl::StatusOr<TomlNode> ParseToml(std::string_view text, const std::string& path,
                                   TomlSections sections = TomlSections::kAreNames);

// Returns the value as TOML in a single line; tables as inline tables.
std::string WriteToml(const TomlNode& node);

// Returns what an INI file has behind a `=` as TOML: a number, a string, or an array if it has
// commas.
std::string IniValueAsToml(std::string_view value);

// Collects what is wrong with a file.
class TomlProblems {
 public:
  explicit TomlProblems(std::string path) : path_(std::move(path)) {}

  // `section` empty: the place belongs to none.
  void Add(const TomlNode& at, std::string_view section, std::string_view words);
  // INVALID_ARGUMENT with a line "PATH:LINE:COLUMN: [SECTION]: WORDS" for each problem, in the
  // order of the file, and a last line that counts those beyond kTomlProblemsMax.
  absl::Status status() const;

 private:
  struct Problem {
    uint32_t line = 0;
    uint32_t column = 0;
    std::string words;
  };
  std::string path_;
  std::vector<Problem> problems_;
  size_t left_out_ = 0;  // beyond kTomlProblemsMax
};

// A key that sections of a file may have.
struct TomlKey {
  std::string_view name;
  // Takes a scalar, and returns what is wrong with it, as "is one of a, b"; empty: nothing.
  std::function<std::string(const TomlNode& value)> take;
  bool is_list = false;    // accepts one value or an array of values
  bool is_secret = false;  // its value is in no message
};

// Hands the values of a section to its keys. False: something is wrong, and added to `problems`.
bool TakeTomlSection(const TomlNode& section, const std::vector<TomlKey>& keys,
                     TomlProblems& problems);

// Returns a taker for TomlKey that accepts strings alone.
std::function<std::string(const TomlNode& value)> TakeTomlString(std::string& to);

}  // namespace neurontrace
