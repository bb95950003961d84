// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/manifest.h"

#include <google/protobuf/util/json_util.h>

#include "aggregator/deliver/volume.h"
#include "base/sha256.h"
#include "base/status.h"
#include "trace/event_json.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

template <typename Message>
absl::StatusOr<Message> ParseJson(std::string_view text, std::string_view what) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  Message message;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(text), &message, options);
  if (!status.ok()) return DataLoss("{}: not readable: {}", what, status.ToString());
  return message;
}

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendJsonString(text, quoted);
  return quoted;
}

bool IsHexHash(std::string_view text) {
  return text.size() == 2 * kSha256Bytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::Status CheckManifest(const v1::DeliveryManifest& manifest) {
  if (manifest.format_version() != kManifestVersion) {
    return DataLoss("manifest: version {} is none that this program reads",
                    manifest.format_version());
  }
  size_t files = 0;
  for (const v1::DeliveredStep& step : manifest.steps()) {
    for (const v1::DeliveredFile& file : step.files()) {
      if (!IsVolumeName(file.name()) || !IsHexHash(file.sha256())) {
        return DataLoss("manifest: a file named '{}' with the hash '{}'", file.name(),
                        file.sha256());
      }
      ++files;
    }
  }
  for (const v1::UnfinishedFile& file : manifest.unfinished()) {
    if (!IsVolumeName(file.name())) return DataLoss("manifest: a file named '{}'", file.name());
  }
  for (const std::string& directory : manifest.directories()) {
    if (!IsVolumeName(directory)) return DataLoss("manifest: a directory named '{}'", directory);
  }
  if (files > limits::kDeliveredFilesMax) return DataLoss("manifest: {} files", files);
  return absl::OkStatus();
}

}  // namespace

std::string FormatManifest(const v1::DeliveryManifest& manifest) {
  std::string text = fmt::format(
      "{{\"format_version\":{},\n\"producer\":{},\n\"capture_id\":{},\n\"complete\":{},\n",
      manifest.format_version(), Quoted(manifest.producer()), Quoted(manifest.capture_id()),
      manifest.complete());
  text += "\"steps\":[";
  std::string_view between_steps = "\n";
  for (const v1::DeliveredStep& step : manifest.steps()) {
    text += fmt::format(
        "{}{{\"name\":{},\"request\":{},\"done\":{},\"verdict\":{},\"capture_incomplete\":{},"
        "\"files\":[",
        between_steps, Quoted(step.name()), Quoted(step.request()), step.done(),
        Quoted(step.verdict()), step.capture_incomplete());
    std::string_view between = "\n";
    for (const v1::DeliveredFile& file : step.files()) {
      text += fmt::format("{}{{\"name\":{},\"bytes\":{},\"sha256\":{}}}", between,
                          Quoted(file.name()), file.bytes(), Quoted(file.sha256()));
      between = ",\n";
    }
    text += "]}";
    between_steps = ",\n";
  }
  text += "],\n\"unfinished\":[";
  std::string_view between = "\n";
  for (const v1::UnfinishedFile& file : manifest.unfinished()) {
    text += fmt::format("{}{{\"name\":{},\"token\":{}}}", between, Quoted(file.name()),
                        Quoted(file.token()));
    between = ",\n";
  }
  text += "],\n\"directories\":[";
  between = "";
  for (const std::string& directory : manifest.directories()) {
    text += fmt::format("{}{}", between, Quoted(directory));
    between = ",";
  }
  return text + "]}\n";
}

std::string FormatChecksums(const v1::DeliveryManifest& manifest) {
  std::string text;
  for (const v1::DeliveredStep& step : manifest.steps()) {
    for (const v1::DeliveredFile& file : step.files()) {
      text += fmt::format("{}  {}\n", file.sha256(), file.name());
    }
  }
  return text;
}

absl::StatusOr<v1::DeliveryManifest> ParseManifest(std::string_view text) {
  ASSIGN_OR_RETURN(v1::DeliveryManifest manifest,
                   ParseJson<v1::DeliveryManifest>(text, "manifest"));
  RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

std::string FormatClaim(const v1::DeliveryClaim& claim) {
  return fmt::format("{{\"owner\":{},\"lease_until_realtime_ns\":{}}}\n", Quoted(claim.owner()),
                     claim.lease_until_realtime_ns());
}

absl::StatusOr<v1::DeliveryClaim> ParseClaim(std::string_view text) {
  ASSIGN_OR_RETURN(v1::DeliveryClaim claim, ParseJson<v1::DeliveryClaim>(text, "claim"));
  if (claim.owner().empty()) return DataLoss("claim: without an owner");
  return claim;
}

}  // namespace neurontrace
