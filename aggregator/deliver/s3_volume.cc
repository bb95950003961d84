// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/s3_volume.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "aggregator/deliver/s3_xml.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// A lower bound of what services put into a page, which is 1,000 keys with most. Together with the
// pages that may be empty it bounds the pages of a listing.
constexpr size_t kPageKeys = 100;
constexpr size_t kEmptyPagesMax = 100;

// Returns whether the text can be put unchanged into a request's address or its XML. ETags and
// upload ids come from the service or from a manifest that anybody may have written.
bool IsPlainToken(std::string_view text) {
  constexpr size_t kTokenBytesMax = 1024;
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '<' && c != '&'; });
}

// A file of one part stays in buffer_ until Commit. From the second part on it is a multipart
// upload.
class S3File : public Volume::File {
 public:
  S3File(S3Client& client, std::string key, Volume::Resumption resumption, std::string mark)
      : client_(client),
        key_(std::move(key)),
        resumption_(std::move(resumption)),
        mark_(std::move(mark)) {}

  // Continues the upload of the token if the service still has it.
  absl::Status Resume() {
    S3Upload upload = ParseUpload(resumption_.token);
    if (upload.id.empty()) return absl::OkStatus();
    const auto reply = client_.Do(
        {.method = "GET", .key = key_, .query = {{"max-parts", "1"}, {"uploadId", upload.id}}});
    if (absl::IsNotFound(reply.status())) return absl::OkStatus();
    RETURN_IF_ERROR(reply.status());
    upload_ = std::move(upload);
    return absl::OkStatus();
  }

  absl::Status Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      // Only when more follows: the last part is sent by Sync, or with Commit if it is the only
      // one.
      if (buffer_.size() == S3Volume::kPartBytes) RETURN_IF_ERROR(SendPart());
      const size_t size = std::min(bytes.size(), S3Volume::kPartBytes - buffer_.size());
      buffer_.append(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    return absl::OkStatus();
  }

  // Sends a large file's last part; a small file is sent at once by Commit.
  absl::Status Sync() override { return sent_ == 0 ? absl::OkStatus() : SendPart(); }

  absl::Status Commit() override {
    if (sent_ == 0) {
      RETURN_IF_ERROR(client_.Do({.method = "PUT", .key = key_, .body = buffer_}).status());
      if (!upload_.id.empty()) Abort();
      return absl::OkStatus();
    }
    std::string xml = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < sent_; ++i) {
      xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                         upload_.parts[i].etag);
    }
    xml += "</CompleteMultipartUpload>";
    const absl::Status status =
        client_
            .Do({.method = "POST", .key = key_, .query = {{"uploadId", upload_.id}}, .body = xml})
            .status();
    // If an answer was lost, the retry no longer finds the upload, although the object is complete.
    return status.ok() || !IsThere() ? status : absl::OkStatus();
  }

 private:
  // Returns whether the object is what this upload has made.
  bool IsThere() {
    const auto reply = client_.Do({.method = "HEAD", .key = key_});
    return reply.ok() && reply->mark == upload_.mark;
  }

  // Sends buffer_ as the next part, or skips it if an earlier delivery has sent the same bytes as
  // this part. Empties buffer_.
  absl::Status SendPart() {
    if (sent_ >= S3Volume::kPartsMax) {
      return ResourceExhausted(
          "s3://{}/{} would have more than {} parts of {} bytes; split the export with --max-size",
          client_.bucket(), key_, S3Volume::kPartsMax, S3Volume::kPartBytes);
    }
    // The token is saved before any part is sent, so that no upload is left that nobody knows.
    if (upload_.id.empty()) RETURN_IF_ERROR(BeginUpload());
    std::string hash = Sha256HexOf(buffer_);
    const bool is_there = sent_ < upload_.parts.size() && upload_.parts[sent_].sha256 == hash;
    if (!is_there) {
      ASSIGN_OR_RETURN(const S3Reply reply,
                       client_.Do({.method = "PUT",
                                   .key = key_,
                                   .query = {{"partNumber", fmt::format("{}", sent_ + 1)},
                                             {"uploadId", upload_.id}},
                                   .body = buffer_}));
      if (!IsPlainToken(reply.etag)) {
        return Unavailable("s3://{}/{}: the answer to a part has no ETag", client_.bucket(), key_);
      }
      if (sent_ == upload_.parts.size()) upload_.parts.emplace_back();
      upload_.parts[sent_] = {reply.etag, std::move(hash)};
    }
    ++sent_;
    buffer_.clear();
    return is_there ? absl::OkStatus() : Remember();
  }

  // Starts a multipart upload, and saves its id before any part is sent.
  absl::Status BeginUpload() {
    ASSIGN_OR_RETURN(const S3Reply reply, client_.Do({.method = "POST",
                                                      .key = key_,
                                                      .query = {{"uploads", ""}},
                                                      .headers = {S3MarkHeader(mark_)}}));
    upload_.id = XmlText(reply.body, "UploadId");
    if (!IsPlainToken(upload_.id)) {
      return Unavailable("s3://{}/{}: the answer to a new multipart upload has no UploadId",
                         client_.bucket(), key_);
    }
    upload_.mark = mark_;
    return Remember();
  }

  // Saves the token, so that a successor can continue from the parts so far.
  absl::Status Remember() {
    return resumption_.remember ? resumption_.remember(FormatUpload(upload_)) : absl::OkStatus();
  }

  // If this fails, parts remain that nobody sees; the bucket's lifecycle rule removes them.
  void Abort() {
    client_.Do({.method = "DELETE", .key = key_, .query = {{"uploadId", upload_.id}}})
        .status()
        .IgnoreError();
  }

  S3Client& client_;
  const std::string key_;
  const Volume::Resumption resumption_;
  // Of an upload that begins here; a resumed one keeps its own.
  const std::string mark_;
  S3Upload upload_;
  // Parts of this file that the service has.
  size_t sent_ = 0;
  std::string buffer_;
};

}  // namespace

std::string FormatUpload(const S3Upload& upload) {
  std::string token = fmt::format("{} {}\n", upload.id, upload.mark);
  for (const S3Upload::Part& part : upload.parts) {
    token += fmt::format("{} {}\n", part.etag, part.sha256);
  }
  return token;
}

S3Upload ParseUpload(const std::string& token) {
  S3Upload upload;
  std::istringstream lines(token);
  std::string line;
  std::getline(lines, line);
  const size_t between = line.find(' ');
  if (between == std::string::npos) return {};
  upload.id = line.substr(0, between);
  upload.mark = line.substr(between + 1);
  if (!IsPlainToken(upload.id) || !IsPlainToken(upload.mark)) return {};
  while (std::getline(lines, line)) {
    const size_t blank = line.find(' ');
    if (blank == std::string::npos || upload.parts.size() >= S3Volume::kPartsMax) return {};
    S3Upload::Part part{line.substr(0, blank), line.substr(blank + 1)};
    if (!IsPlainToken(part.etag) || !IsPlainToken(part.sha256)) return {};
    upload.parts.push_back(std::move(part));
  }
  return upload;
}

S3Volume::S3Volume(std::unique_ptr<S3Client> client, std::string prefix, std::string nonce)
    : client_(std::move(client)), prefix_(std::move(prefix)), nonce_(std::move(nonce)) {}

std::string S3Volume::KeyOf(const std::string& name) const {
  return prefix_.empty() ? name : prefix_ + "/" + name;
}

std::string S3Volume::Where(const std::string& name) const {
  return fmt::format("s3://{}/{}", client_->bucket(), KeyOf(name));
}

absl::StatusOr<std::unique_ptr<Volume::File>> S3Volume::Create(const std::string& name,
                                                               Resumption resumption) {
  if (!IsVolumeName(name)) return InvalidArgument("'{}' is not a valid file name", name);
  auto file = std::make_unique<S3File>(*client_, KeyOf(name), std::move(resumption),
                                       fmt::format("{}.{}", nonce_, files_++));
  RETURN_IF_ERROR(file->Resume());
  return file;
}

// The service itself decides between two writers: only one PUT with If-None-Match: * succeeds.
absl::Status S3Volume::CreateOnce(const std::string& name, std::string_view bytes) {
  if (!IsVolumeName(name)) return InvalidArgument("'{}' is not a valid file name", name);
  return client_
      ->Do({.method = "PUT", .key = KeyOf(name), .headers = {"If-None-Match: *"}, .body = bytes})
      .status();
}

absl::StatusOr<std::string> S3Volume::Read(const std::string& name, size_t bytes_max) {
  ASSIGN_OR_RETURN(
      S3Reply reply,
      client_->Do({.method = "GET", .key = KeyOf(name), .reply_bytes_max = bytes_max}));
  return std::move(reply.body);
}

absl::StatusOr<uint64_t> S3Volume::Size(const std::string& name) {
  ASSIGN_OR_RETURN(const S3Reply reply, client_->Do({.method = "HEAD", .key = KeyOf(name)}));
  return reply.content_bytes;
}

// The delimiter makes the service list the objects of this directory alone, without those below it.
absl::StatusOr<std::vector<Volume::Entry>> S3Volume::List(const std::string& directory,
                                                          size_t entries_max) {
  const std::string prefix = KeyOf(directory) + "/";
  std::vector<Entry> entries;
  S3Request request{.method = "GET",
                    .query = {{"delimiter", "/"}, {"list-type", "2"}, {"prefix", prefix}}};
  // Pages may be empty, and a hostile service might never end.
  const size_t pages_max = entries_max / kPageKeys + kEmptyPagesMax;
  for (size_t pages = 0; pages < pages_max; ++pages) {
    ASSIGN_OR_RETURN(const S3Reply reply, client_->Do(request));
    for (const std::string_view contents : XmlElements(reply.body, "Contents")) {
      const std::string key = XmlText(contents, "Key");
      if (!key.starts_with(prefix) || key.size() == prefix.size()) continue;
      if (entries.size() >= entries_max) {
        return ResourceExhausted("{} holds more than {} objects", Where(directory), entries_max);
      }
      Entry entry{.name = key.substr(prefix.size())};
      const std::string size = XmlText(contents, "Size");
      std::from_chars(size.data(), size.data() + size.size(), entry.bytes);
      entry.modified_realtime_ns = ParseS3Time(XmlText(contents, "LastModified"));
      entries.push_back(std::move(entry));
    }
    const std::string next = XmlText(reply.body, "NextContinuationToken");
    if (XmlText(reply.body, "IsTruncated") != "true" || next.empty()) return entries;
    request.query["continuation-token"] = next;
  }
  return ResourceExhausted("{} is listed in more than {} pages", Where(directory), pages_max);
}

// S3 answers 204 for a key that does not exist; other services answer 404.
absl::Status S3Volume::Remove(const std::string& name) {
  const absl::Status status = client_->Do({.method = "DELETE", .key = KeyOf(name)}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

void S3Volume::Abandon(const std::string& name, const std::string& token) {
  const S3Upload upload = ParseUpload(token);
  if (upload.id.empty()) return;
  client_->Do({.method = "DELETE", .key = KeyOf(name), .query = {{"uploadId", upload.id}}})
      .status()
      .IgnoreError();
}

}  // namespace neurontrace
