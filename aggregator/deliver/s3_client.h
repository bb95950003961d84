// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/http/http_client.h"

namespace neurontrace {

// The service that keeps the objects. A plain value of the configuration.
struct S3Service {
  // https://HOST[:PORT]; empty: AWS's own endpoint of the region.
  std::string endpoint;
  // Empty: AWS_REGION, AWS_DEFAULT_REGION or us-east-1, in this order.
  std::string region;
  // PEM file of the authorities that are trusted for the service. Empty: AWS_CA_BUNDLE or
  // MachineAuthorities().
  std::string authorities;
};
// Returns an empty text for an acceptable endpoint, and else what is wrong. Without a scheme it is
// https; plain http must be written out.
std::string CheckS3Endpoint(const std::string& endpoint);

// One request of the S3 REST API. Borrows its body, which must outlive the call.
struct S3Request {
  std::string method;
  // Key of the object; empty for the bucket itself.
  std::string key;
  // Ordered by name, as Signature Version 4 demands.
  std::map<std::string, std::string> query;
  std::vector<std::string> headers;  // "name: value"
  std::string_view body;
  size_t reply_bytes_max = 1u << 20;
};
// The parts of a reply that callers need. A plain value.
struct S3Reply {
  int status = 0;  // HTTP
  std::string body;
  std::string etag;
  // x-amz-meta-neurontrace-upload, which tells who sent the object.
  std::string mark;
  uint64_t content_bytes = 0;
};

// Returns the request header that sets an object's mark.
std::string S3MarkHeader(std::string_view mark);

// Returns a text on how to solve the problem that a reply reports, to be appended to it; empty if
// nothing is known.
std::string S3Remedy(int status, std::string_view code);

// Sends signed requests (AWS Signature Version 4) to one bucket, addressed by path. Certificates
// are checked. Credentials that expire soon are looked up again. A request without an answer, or
// with one that is worth another attempt, is made up to three times, but all attempts together end
// after kVolumeOperationNs. Used by one thread at a time; blocks.
class S3Client {
 public:
  // Looks up the credentials and fails with the errors of S3CredentialsFinder. Sends nothing to S3
  // yet.
  static absl::StatusOr<std::unique_ptr<S3Client>> Make(const S3Service& service,
                                                        const std::string& bucket,
                                                        const Environment& environment);

  // Returns any reply of the service. Fails with UNAVAILABLE if none was received, with
  // FAILED_PRECONDITION if the service's certificate is not trusted, and with OUT_OF_RANGE if the
  // reply is too large.
  absl::StatusOr<S3Reply> Send(const S3Request& request);
  // As Send, but also fails if the status is not 2xx, with the codes that Volume defines.
  absl::StatusOr<S3Reply> Do(const S3Request& request);

  const std::string& bucket() const { return bucket_; }

 private:
  S3Client(const S3Service& service, const std::string& bucket, const Environment& environment);
  absl::StatusOr<S3Reply> SendOnce(const S3Request& request, std::chrono::milliseconds time);
  void RenewCredentials();

  const std::string region_;
  // Of the bucket.
  const std::string url_;
  const std::string bucket_;
  const std::string authorities_;
  S3CredentialsFinder find_credentials_;
  S3Credentials credentials_;
  std::chrono::steady_clock::time_point next_renewal_;
  HttpClient http_;
};

}  // namespace neurontrace
