// SPDX-License-Identifier: Apache-2.0
#include "lib/base/toml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
// toml++ 3.3 asserts conditions that it also reports as errors of the file, for example that a key
// follows the bracket of "[.]". With NDEBUG clang would even assume them. A file must neither
// abort a program nor be undefined behaviour, so the assertions are off and nothing is assumed.
#define TOML_ASSERT(expr) static_cast<void>(0)
#ifdef NDEBUG
#undef NDEBUG
#include <toml++/toml.h>
#define NDEBUG
#else
#include <toml++/toml.h>
#endif

namespace neurontrace {
namespace {

// toml++ builds and destroys a table for each part of a dotted key, by recursion. With this limit,
// kTomlLineBytesMax and TOML_MAX_NESTED_VALUES it takes at most a few MiB of a thread's stack.
constexpr std::ptrdiff_t kLineDotsMax = 512;
constexpr size_t kShownBytesMax = 80;     // of a value in a message
constexpr size_t kWordsBytesMax = 1'000;  // of a message about syntax
constexpr size_t kHintLinesMax = 12;

// Returns the text without blanks, tabs and carriage returns at either end.
std::string_view TrimmedBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Cuts the first line off `text`.
std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// In INI files a comment begins at a mark after a blank; "a#b" is a value.
std::string_view WithoutIniComment(std::string_view value) {
  if (value.starts_with('#') || value.starts_with(';')) return "";
  for (const char* const mark : {" #", " ;", "\t#", "\t;"}) {
    value = value.substr(0, value.find(mark));
  }
  return TrimmedBlanks(value);
}

// Returns whether TOML reads the value as a number or a boolean, so that it needs no quotes.
bool IsNumberOrTruth(std::string_view value) {
  if (value == "true" || value == "false") return true;
  const bool is_numeric = value.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_numeric && std::count(value.begin(), value.end(), '.') <= 1 && !value.empty() &&
         value.front() != '.' && value.back() != '.';
}

// Returns a line of an INI file as TOML.
std::string IniLineAsToml(std::string_view line, TomlSections sections) {
  line = TrimmedBlanks(line);
  if (line.empty() || line[0] == '#') return std::string(line);
  if (line[0] == ';') return fmt::format("#{}", line.substr(1));
  if (line[0] == '[') {
    std::string name(TrimmedBlanks(line.substr(1, line.find(']') - 1)));
    if (name.find(' ') != std::string::npos && !name.starts_with('"')) {
      if (sections == TomlSections::kNest) std::replace(name.begin(), name.end(), ' ', '.');
      if (sections == TomlSections::kAreNames) name = fmt::format("\"{}\"", name);
    }
    return fmt::format("[{}]", name);
  }
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::string(line);
  const std::string_view key = TrimmedBlanks(line.substr(0, equals));
  // The hint goes to a terminal or a log, and somebody may have written a token in place of its
  // hash.
  const bool is_secret = key.starts_with("token");
  return fmt::format("{} = {}", key,
                     is_secret ? "\"...\"" : IniValueAsToml(line.substr(equals + 1)));
}

// Guesses whether a line that TOML refuses is INI: an unquoted value, a comment with a semicolon,
// or a section with a blank in its name. A wrong guess costs only a hint that does not help.
bool LooksLikeIni(std::string_view line) {
  line = TrimmedBlanks(line);
  if (line.starts_with(';')) return true;
  if (line.starts_with('[')) {
    return line.find(' ') < line.find(']') || line.find(';') != std::string_view::npos;
  }
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = TrimmedBlanks(line.substr(equals + 1));
  if (value.empty()) return false;
  if (value[0] == '"') return value.find(" ;") != std::string_view::npos;
  return value.find_first_of("\"'[{") == std::string_view::npos;
}

// Returns how the place that TOML cannot read is written in TOML, if it has the form of INI files;
// else "".
std::string Hint(std::string_view text, uint32_t line, TomlSections sections) {
  std::vector<std::string_view> section;  // all lines up to the line, from its section's first on
  for (; line > 0; --line) {
    const std::string_view next = TakeLine(text);
    if (TrimmedBlanks(next).starts_with('[')) section.clear();
    section.push_back(next);
  }
  if (section.empty() || !LooksLikeIni(section.back())) return "";
  if (!TrimmedBlanks(section.front()).starts_with('[')) {
    // A hint that long would be cut and help nobody.
    if (section.back().size() > kWordsBytesMax / 2) return "";
    return ": strings must be quoted: " +
           CleanText(IniLineAsToml(section.back(), sections), kWordsBytesMax);
  }
  while (!text.empty() && !TrimmedBlanks(text).starts_with('[')) section.push_back(TakeLine(text));
  std::string hint = ": the file is TOML; write";
  for (size_t i = 0; i < std::min(section.size(), kHintLinesMax); ++i) {
    if (TrimmedBlanks(section[i]).empty()) continue;
    hint += "\n" + CleanText(IniLineAsToml(section[i], sections), kWordsBytesMax);
  }
  return hint;
}

// Copies the tree of toml++ without recursing deeper than kTomlDepthMax: dotted keys can nest
// tables more deeply than TOML_MAX_NESTED_VALUES, which counts brackets only.
class Copier {
 public:
  void Copy(const toml::node& from, size_t depth, TomlNode& to) {
    if (to.line == 0) SetPlace(from.source(), to);
    if (const auto* const words = from.as_string()) {
      to.kind = TomlKind::kString;
      to.text = words->get();
    } else if (const auto* const whole = from.as_integer()) {
      to.kind = TomlKind::kInteger;
      to.text = std::to_string(whole->get());
    } else if (const auto* const number = from.as_floating_point()) {
      to.kind = TomlKind::kFloat;
      to.text = fmt::format("{}", number->get());
    } else if (const auto* const truth = from.as_boolean()) {
      to.kind = TomlKind::kBoolean;
      to.text = truth->get() ? "true" : "false";
    } else if (const auto* const array = from.as_array()) {
      to.kind = TomlKind::kArray;
      if (IsTooDeep(to, depth)) return;
      for (const toml::node& element : *array) Copy(element, depth + 1, to.children.emplace_back());
    } else if (const auto* const table = from.as_table()) {
      to.kind = TomlKind::kTable;
      if (!IsTooDeep(to, depth)) CopyMembers(*table, depth, to);
    } else {
      to.kind = TomlKind::kOther;
    }
  }
  // The first place that is too deep; line 0: none.
  const TomlNode& too_deep() const { return too_deep_; }

 private:
  static void SetPlace(const toml::source_region& source, TomlNode& to) {
    to.line = source.begin.line;
    to.column = source.begin.column;
  }
  bool IsTooDeep(const TomlNode& to, size_t depth) {
    if (depth <= kTomlDepthMax) return false;
    if (too_deep_.line == 0) too_deep_ = {.line = to.line, .column = to.column};
    return true;
  }
  void CopyMembers(const toml::table& table, size_t depth, TomlNode& to) {
    for (const auto& [key, node] : table) {
      TomlNode& child = to.children.emplace_back();
      child.key = key.str();
      SetPlace(key.source(), child);
      Copy(node, depth + 1, child);
    }
    // toml++ sorts members by key. In the order of the file the first problem that a reader meets
    // is reported first.
    std::sort(to.children.begin(), to.children.end(), [](const TomlNode& a, const TomlNode& b) {
      return std::tie(a.line, a.column, a.key) < std::tie(b.line, b.column, b.key);
    });
  }

  TomlNode too_deep_;
};

// Runs before toml++ sees the text, as the limits protect its recursion.
absl::Status CheckLines(std::string_view text, const std::string& path) {
  for (size_t line = 1; !text.empty(); ++line) {
    const std::string_view words = TakeLine(text);
    if (words.size() > kTomlLineBytesMax) {
      return InvalidArgument("{}:{}:1: the line is longer than {} bytes", path, line,
                             kTomlLineBytesMax);
    }
    if (std::count(words.begin(), words.end(), '.') > kLineDotsMax) {
      return InvalidArgument("{}:{}:1: the line has more than {} dots; split it", path, line,
                             kLineDotsMax);
    }
  }
  return absl::OkStatus();
}

// Returns the text as a basic string of TOML, in which control characters are escaped.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (IsControl(c)) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace

absl::StatusOr<TomlNode> ParseToml(std::string_view text, const std::string& path,
                                   TomlSections sections) {
  RETURN_IF_ERROR(CheckLines(text, path));
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    return InvalidArgument("{}:{}:{}: {}{}", path, at.line, at.column,
                           CleanText(parsed.error().description(), kWordsBytesMax),
                           Hint(text, at.line, sections));
  }
  TomlNode root;
  Copier copier;
  copier.Copy(parsed.table(), 0, root);
  const TomlNode& deep = copier.too_deep();
  if (deep.line == 0) return root;
  return InvalidArgument("{}:{}:{}: tables and arrays are nested more than {} deep", path,
                         deep.line, deep.column, kTomlDepthMax);
}

std::string WriteToml(const TomlNode& node) {
  if (node.kind == TomlKind::kString) return Quoted(node.text);
  if (node.is_scalar()) return node.text;
  std::string text;
  for (const TomlNode& child : node.children) {
    if (!text.empty()) text += ", ";
    if (node.kind == TomlKind::kTable) text += Quoted(child.key) + " = ";
    text += WriteToml(child);
  }
  return node.kind == TomlKind::kArray ? fmt::format("[{}]", text) : fmt::format("{{{}}}", text);
}

std::string IniValueAsToml(std::string_view value) {
  value = WithoutIniComment(TrimmedBlanks(value));
  if (IsNumberOrTruth(value)) return std::string(value);
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  if (value.find(',') == std::string_view::npos) return Quoted(value);
  std::string array;
  while (!value.empty()) {
    const std::string_view one = value.substr(0, value.find(','));
    value.remove_prefix(std::min(one.size() + 1, value.size()));
    array += (array.empty() ? "" : ", ") + (IsNumberOrTruth(TrimmedBlanks(one))
                                                ? std::string(TrimmedBlanks(one))
                                                : Quoted(TrimmedBlanks(one)));
  }
  return fmt::format("[{}]", array);
}

void TomlProblems::Add(const TomlNode& at, std::string_view section, std::string_view words) {
  // Problems come roughly in the order of the file, so that the first ones are kept and the rest is
  // counted.
  if (problems_.size() >= kTomlProblemsMax) {
    ++left_out_;
    return;
  }
  const std::string name =
      section.empty() ? "" : fmt::format("[{}]: ", CleanText(section, kShownBytesMax));
  problems_.push_back(
      {at.line, at.column, fmt::format("{}:{}:{}: {}{}", path_, at.line, at.column, name, words)});
}

absl::Status TomlProblems::status() const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::string lines;
  for (const Problem& problem : sorted) lines += (lines.empty() ? "" : "\n") + problem.words;
  if (left_out_ > 0) lines += fmt::format("\n{}: {} more problems", path_, left_out_);
  return lines.empty() ? absl::OkStatus() : InvalidArgument("{}", lines);
}

// Continues after an error, so that a user sees all problems of a file at once.
bool TakeTomlSection(const TomlNode& section, const std::vector<TomlKey>& keys,
                     TomlProblems& problems) {
  bool is_good = true;
  const auto complain = [&](const TomlNode& at, const std::string& words) {
    is_good = false;
    problems.Add(at, section.key, words);
  };
  const auto take = [&](const TomlKey& key, const TomlNode& value) {
    std::string problem;
    if (!value.is_scalar()) {
      problem = key.is_list ? "must be a value or an array of values" : "must be a single value";
    } else if (value.text.empty()) {
      problem = "has no value; set one or remove the key";
    } else {
      problem = key.take(value);
    }
    if (problem.empty()) return;
    // A message shows the value as it is in the file, unless it is secret or has no short form.
    const bool is_shown = value.is_scalar() && !value.text.empty() && !key.is_secret;
    const std::string shown =
        is_shown ? fmt::format("{} = {}: ", key.name, CleanText(WriteToml(value), kShownBytesMax))
                 : "";
    complain(value, fmt::format("{}{} {}", shown, key.name, problem));
  };
  for (const TomlNode& member : section.children) {
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const TomlKey& each) { return each.name == member.key; });
    if (key == keys.end()) {
      std::string names;
      for (const TomlKey& each : keys) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
      }
      complain(member, fmt::format("unknown key '{}'; the keys are {}",
                                   CleanText(member.key, kShownBytesMax), names));
    } else if (!key->is_list || member.kind != TomlKind::kArray) {
      take(*key, member);
    } else if (member.children.empty()) {
      complain(member, fmt::format("{} has no value; set one or remove the key", key->name));
    } else {
      for (const TomlNode& element : member.children) take(*key, element);
    }
  }
  return is_good;
}

std::function<std::string(const TomlNode& value)> TakeTomlString(std::string& to) {
  return [&to](const TomlNode& value) -> std::string {
    if (value.kind != TomlKind::kString) return "must be a quoted string";
    to = value.text;
    return "";
  };
}

}  // namespace neurontrace
