// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/text.h"
#include "lib/base/json_writer.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {
namespace {

// One line of `config show`: an option's value in effect and its source.
struct Row {
  std::string command;
  std::string option;
  std::string value;
  std::string from;
};

// Returns the parts with commas between them, as they may be typed.
std::string Joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ",") + part;
  return out;
}

// Returns whether one of the typed words is this option, with or without "=VALUE".
bool WasTyped(const CLI::Option& option, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&option](const std::string& word) {
    return word.starts_with('-') && option.check_name(word.substr(0, word.find('=')));
  });
}

// Returns the value in effect and its source. CLI11 handles values of the environment as if they
// had been typed, so the typed words have to be compared. A typed value that equals the variable
// counts as typed.
Row RowOf(const CLI::App& command, const CLI::Option& option, const Context& context) {
  Row row{.command = PathOf(command), .option = option.get_lnames().front()};
  const std::string& variable = option.get_envname();
  const char* const environment = variable.empty() ? nullptr : getenv(variable.c_str());
  if (option.count() > 0) {
    row.value = Joined(option.results());
    const bool is_environment =
        environment != nullptr && row.value == environment && !WasTyped(option, context.words);
    row.from = is_environment ? variable : "command line";
    return row;
  }
  if (environment != nullptr && *environment != '\0' && command.get_parent() != nullptr) {
    // The command was not chosen, so the parser has not read its variable.
    row.value = environment;
    row.from = variable;
    return row;
  }
  row.value = option.get_default_str();
  const auto origin = context.config_origins.find(&option);
  row.from =
      origin == context.config_origins.end()
          ? "default"
          : fmt::format("{} {}:{}", origin->second.label, origin->second.path, origin->second.line);
  return row;
}

// Adds the rows of a command and those below it. Without `all` omits options of single commands
// that have their default.
void Collect(const CLI::App& command, const Context& context, bool all, std::vector<Row>& rows) {
  for (const CLI::Option* const option : command.get_options()) {
    if (!IsConfigurable(*option)) continue;
    Row row = RowOf(command, *option, context);
    const bool is_plain = row.from == "default" && command.get_parent() != nullptr;
    if (all || !is_plain) rows.push_back(std::move(row));
  }
  for (const CLI::App* const child :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    Collect(*child, context, all, rows);
  }
}

// Prints the table or the JSON of the options, and which files are read. Returns kExitDone.
int ShowConfig(const CLI::App& app, const Context& context, bool all) {
  std::vector<Row> rows;
  Collect(app, context, all, rows);
  if (context.json) {
    JsonWriter out(JsonWriter::Style::kSpaced);
    out.Open('{').Space("\n  ").Key("options").Open('[');
    for (const Row& row : rows) {
      out.Space("\n    ").Open('{').Member("command", row.command).Member("option", row.option);
      out.Member("value", row.value).Member("from", row.from).Close('}');
    }
    Print("{}\n", out.Space("\n  ").Close(']').Space("\n").Close('}').Take());
    return kExitDone;
  }
  std::vector<std::vector<std::string>> table;
  for (const Row& row : rows) {
    table.push_back({row.command.empty() ? "(all)" : row.command, row.option,
                     row.value.empty() ? "-" : row.value, row.from});
  }
  Print("{}", FormatTable({"COMMAND", "OPTION", "VALUE", "FROM"}, table));
  Print("\nFiles (later ones override):\n");
  for (const ConfigPlace& place : context.config_places) {
    Print("  {} {}\n", place.label, place.path);
  }
  return kExitDone;
}

}  // namespace

void AddConfigCommand(CLI::App& app, Context& context, Run& run) {
  CLI::App* command = app.add_subcommand("config", "Show where option values come from");
  command->require_subcommand(1);
  CLI::App* show = command->add_subcommand(
      "show", "Show effective values: options of every command, and all that are set");
  auto all = std::make_shared<bool>(false);
  show->add_flag("--all", *all, "Include options of single commands that have their default");
  constexpr char kFooter[] =
      "Example:\n"
      "  neurontrace config show --output json\n\n"
      "An option is read from the command line, then the environment (if its help names a\n"
      "variable), then ~/.config/neurontrace/config (or the file in NEURONTRACE_CONFIG), then\n"
      "/etc/neurontrace/config; otherwise it has its default. In a file, as TOML:\n"
      "  aggregator = \"aggregator.example:9400\"\n"
      "  [export]\n"
      "  format = \"json\"";
  command->footer(kFooter);
  show->footer(kFooter);
  command->callback([&app, &context, &run, all] {
    run = [&app, &context, all] { return ShowConfig(app, context, *all); };
  });
}

}  // namespace neurontrace::cli
