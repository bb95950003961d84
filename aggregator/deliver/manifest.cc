// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/manifest.h"

#include <google/protobuf/util/json_util.h>

#include "aggregator/deliver/volume.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_writer.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/artifact.h"
#include "lib/trace/delivery_limits.h"

namespace neurontrace {
namespace {

// Of a text in a manifest or claim that may appear in logs and messages.
constexpr size_t kWordsBytesMax = 4096;

// Parses any JSON text. Fails with DATA_LOSS if it is not JSON or does not fit the message; `what`
// begins the error.
template <typename Message>
absl::StatusOr<Message> ParseJson(std::string_view text, std::string_view what) {
  google::protobuf::util::JsonParseOptions options;
  // A newer version may add fields; format_version changes if an old reader must not continue.
  options.ignore_unknown_fields = true;
  Message message;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(text), &message, options);
  if (!status.ok()) return DataLoss("{}: cannot parse it: {}", what, status.ToString());
  return message;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns whether the text is a SHA-256 in lower-case hexadecimal digits.
bool IsHexHash(std::string_view text) { return text.size() == 2 * kSha256Bytes && IsHex(text); }

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Removes a first directory of this word and twelve hexadecimal digits, as ArtifactPaths makes it
// if several artifacts have one place.
std::string_view WithoutHashed(std::string_view word, std::string_view name) {
  constexpr size_t kDigits = 12;
  const bool is_one = name.starts_with(word) && name.find('/') == word.size() + kDigits &&
                      IsHex(name.substr(word.size(), kDigits));
  return is_one ? name.substr(word.size() + kDigits + 1) : name;
}

// Returns whether the name is one of the vendor's layout, which captures share: an artifact, or the
// description of a worker.
bool IsInspectName(std::string_view name) {
  name = WithoutHashed("root-", WithoutHashed("agent-", name));
  const size_t first = name.find('/');
  const size_t last = name.rfind('/');
  if (first == std::string_view::npos) return false;
  const std::string_view session = last > first ? name.substr(first + 1, last - first - 1) : "";
  const std::string_view base = name.substr(last + 1);
  return MakeArtifactPlace(name.substr(0, first), session, base).ok() ||
         (IsDigits(session) && base == "neurontrace.json");
}

// Returns whether a delivery of this capture may have written the file, and so may remove it. A
// manifest can be planted: without this check it could make the aggregator delete anything on the
// volume. The files about the delivery itself are never listed.
bool IsDeliveredName(std::string_view name, std::string_view capture_id) {
  if (!IsVolumeName(name)) return false;
  const std::string own = fmt::format("neurontrace_{}/", capture_id);
  if (!name.starts_with(own)) return IsInspectName(name);
  name.remove_prefix(own.size());
  const bool is_about_it =
      name.starts_with("manifest.") || name.starts_with("claim.") || name == "SHA256SUMS";
  return !is_about_it || name.find('/') != std::string_view::npos;
}

// Checks everything that deliveries rely on when they remove, resume or sweep files of the
// manifest.
absl::Status CheckManifest(const v1::DeliveryManifest& manifest) {
  if (manifest.format_version() != kManifestVersion) {
    return DataLoss("manifest: this program does not read version {}", manifest.format_version());
  }
  if (const char* const list = OverfullList(manifest); list != nullptr) {
    return DataLoss("manifest: more than {} {}", limits::kManifestEntriesMax, list);
  }
  size_t files = 0;
  for (const v1::DeliveredStep& step : manifest.steps()) {
    for (const v1::DeliveredFile& file : step.files()) {
      if (!IsDeliveredName(file.name(), manifest.capture_id()) || !IsHexHash(file.sha256())) {
        return DataLoss("manifest: invalid file name '{}' or hash '{}'", file.name(),
                        file.sha256());
      }
      ++files;
    }
  }
  for (const v1::UnfinishedFile& file : manifest.unfinished()) {
    if (!IsDeliveredName(file.name(), manifest.capture_id())) {
      return DataLoss("manifest: invalid file name '{}'", file.name());
    }
  }
  for (const std::string& directory : manifest.directories()) {
    if (!IsVolumeName(directory))
      return DataLoss("manifest: invalid directory name '{}'", directory);
  }
  if (files > limits::kDeliveredFilesMax) {
    return DataLoss("manifest: {} files exceed the limit of {}", files, limits::kDeliveredFilesMax);
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatManifest(const v1::DeliveryManifest& manifest) {
  JsonWriter out;
  out.Open('{').Member("format_version", manifest.format_version());
  out.Space("\n").Member("producer", manifest.producer());
  out.Space("\n").Member("capture_id", manifest.capture_id());
  out.Space("\n").Member("complete", manifest.complete());
  out.Space("\n").Key("steps").Open('[');
  for (const v1::DeliveredStep& step : manifest.steps()) {
    out.Space("\n").Open('{').Member("name", step.name()).Member("request", step.request());
    out.Member("done", step.done()).Member("verdict", step.verdict());
    out.Member("capture_incomplete", step.capture_incomplete()).Key("files").Open('[');
    for (const v1::DeliveredFile& file : step.files()) {
      out.Space("\n").Open('{').Member("name", file.name()).Member("bytes", file.bytes());
      out.Member("sha256", file.sha256()).Close('}');
    }
    out.Close(']').Close('}');
  }
  out.Close(']').Space("\n").Key("unfinished").Open('[');
  for (const v1::UnfinishedFile& file : manifest.unfinished()) {
    out.Space("\n").Open('{').Member("name", file.name()).Member("token", file.token()).Close('}');
  }
  out.Close(']').Space("\n").Key("directories").Open('[');
  for (const std::string& directory : manifest.directories()) out.Value(directory);
  return out.Close(']').Close('}').Take() + "\n";
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

ManifestCounts CountManifest(std::string_view text) {
  ManifestCounts counts;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{') ++counts.objects;
    if (c == ',') ++counts.commas;
    // Both quotes delimit strings, because protobuf's parser accepts both.
    if (c != '"' && c != '\'') continue;
    for (++at; at < text.size() && text[at] != c; ++at) {
      if (text[at] == '\\') ++at;
    }
  }
  return counts;
}

const char* OverfullList(const v1::DeliveryManifest& manifest) {
  const auto is_overfull = [](int size) {
    return static_cast<size_t>(size) > limits::kManifestEntriesMax;
  };
  if (is_overfull(manifest.steps_size())) return "steps";
  if (is_overfull(manifest.unfinished_size())) return "unfinished files";
  return is_overfull(manifest.directories_size()) ? "directories" : nullptr;
}

absl::StatusOr<v1::DeliveryManifest> ParseManifest(std::string_view text) {
  // Before the parser: a few bytes of JSON such as "{}," become a message of a hundred bytes each.
  const ManifestCounts counts = CountManifest(text);
  if (counts.objects > limits::kManifestObjectsMax) {
    return DataLoss("manifest: more than {} objects", limits::kManifestObjectsMax);
  }
  if (counts.commas > limits::kManifestCommasMax) {
    return DataLoss("manifest: more than {} values", limits::kManifestCommasMax);
  }
  ASSIGN_OR_RETURN(v1::DeliveryManifest manifest,
                   ParseJson<v1::DeliveryManifest>(text, "manifest"));
  RETURN_IF_ERROR(CheckManifest(manifest));
  for (v1::DeliveredStep& step : *manifest.mutable_steps()) {
    step.set_verdict(CleanText(step.verdict(), kWordsBytesMax));
  }
  return manifest;
}

std::string FormatClaim(const v1::DeliveryClaim& claim) {
  JsonWriter out;
  out.Open('{').Member("owner", claim.owner());
  out.Member("lease_until_realtime_ns", claim.lease_until_realtime_ns());
  out.Member("lock", claim.lock()).Member("run", claim.run()).Close('}');
  return out.Take() + "\n";
}

absl::StatusOr<v1::DeliveryClaim> ParseClaim(std::string_view text) {
  ASSIGN_OR_RETURN(v1::DeliveryClaim claim, ParseJson<v1::DeliveryClaim>(text, "claim"));
  if (claim.owner().empty()) return DataLoss("claim: the owner is missing");
  claim.set_owner(CleanText(claim.owner(), kWordsBytesMax));
  return claim;
}

}  // namespace neurontrace
