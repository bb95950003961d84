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
// of the command line, access policy, trigger rules. This is the only reader of such files and the
// only place that includes toml++. It is pure: callers read the file. Texts are copied, so nothing
// refers to the parsed text.
namespace neurontrace {

inline constexpr size_t kTomlLineBytesMax = 4'096;
inline constexpr size_t kTomlDepthMax = 8;      // of tables and arrays within each other
inline constexpr size_t kTomlProblemsMax = 32;  // reported for one file; further ones are counted

// Scalars come before kOther, see is_scalar. kOther: dates and times, which no option has.
enum class TomlKind : uint8_t { kString, kInteger, kFloat, kBoolean, kOther, kArray, kTable };

// A value of a file with its place there.
struct TomlNode {
  TomlKind kind = TomlKind::kTable;
  std::string key;  // empty: an element of an array
  uint32_t line = 0;
  uint32_t column = 0;             // both from 1; of the key, if there is one
  std::string text;                // of a scalar, as it is typed on a command line
  std::vector<TomlNode> children;  // elements, or members in the order of the file

  bool is_scalar() const { return kind < TomlKind::kOther; }
};

// What a blank in the name of an INI section means: part of one name, or a table within another.
enum class TomlSections : uint8_t { kAreNames, kNest };

// Parses `text` and returns its root table. Fails with INVALID_ARGUMENT "PATH:LINE:COLUMN: REASON"
// if the text is not TOML or exceeds a limit. If it has the INI form that other programs use, the
// message also shows the place as TOML, where a section [a b] becomes ["a b"], or [a.b] with kNest.
absl::StatusOr<TomlNode> ParseToml(std::string_view text, const std::string& path,
                                   TomlSections sections = TomlSections::kAreNames);

// Returns the value as TOML in a single line; tables as inline tables.
std::string WriteToml(const TomlNode& node);

// Returns the value of an INI file, which follows the `=`, as TOML: a number, a string, or an array
// if it contains commas. A comment after the value is dropped.
std::string IniValueAsToml(std::string_view value);

// Collects what is wrong with a file, for one report. One thread.
class TomlProblems {
 public:
  explicit TomlProblems(std::string path) : path_(std::move(path)) {}

  // Adds a problem at the place of `at`. `section` is empty if the place belongs to no section.
  void Add(const TomlNode& at, std::string_view section, std::string_view words);
  // Returns INVALID_ARGUMENT with a line "PATH:LINE:COLUMN: [SECTION]: REASON" for each problem, in
  // the order of the file, and a last line that counts those beyond kTomlProblemsMax; OK if there
  // are none.
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

// A key that sections of a file may have, and what to do with its value.
struct TomlKey {
  std::string_view name;
  // Called with each scalar. Returns what is wrong with it, such as "is one of a, b", or "" if it
  // is accepted.
  std::function<std::string(const TomlNode& value)> take;
  bool is_list = false;    // accepts one value or an array of values
  bool is_secret = false;  // its value is in no message
};

// Passes the values of a section to `take` of their keys. Returns false if anything is wrong, after
// adding it to `problems`: an unknown key, an empty value, an array where one value is expected, or
// a value that `take` refuses.
bool ParseTomlSection(const TomlNode& section, const std::vector<TomlKey>& keys,
                      TomlProblems& problems);

// Returns a `take` for TomlKey that accepts strings alone and stores them in `to`, which must
// outlive it.
std::function<std::string(const TomlNode& value)> ParseTomlString(std::string& to);

}  // namespace neurontrace
