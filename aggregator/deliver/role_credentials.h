// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/http/http_client.h"

// Credentials that AWS gives to a role for some hours: of a service account (EKS's IRSA), of a
// container (EKS Pod Identity, ECS), of an EC2 instance. The environment names the service to ask,
// in the variables that AWS's own tools know:
// https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html. The functions keep
// no state; one thread at a time uses an HTTP client.
namespace neurontrace {

// How a function asks, in addition to the environment. Borrows; all of it must outlive the call.
struct RoleQuestion {
  const Environment& environment;
  const std::string& region;
  // As in HttpRequest.
  const std::string& authorities;
  HttpClient& http;
};

// Each of these three functions returns nothing if the environment does not name such a role, and
// blocks for up to ten seconds or so. They fail if a role is named but its credentials cannot be
// obtained: with UNAVAILABLE if another attempt may succeed, else with FAILED_PRECONDITION.
// Messages name what was asked and never contain a token or a key.
//
// Exchanges the token in AWS_WEB_IDENTITY_TOKEN_FILE for credentials of the role AWS_ROLE_ARN, at
// AWS's STS of the region or at AWS_ENDPOINT_URL_STS (EKS's IRSA).
absl::StatusOr<std::optional<S3Credentials>> WebIdentityCredentials(const RoleQuestion& question);

// Asks AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI. As with AWS's own tools, a full one
// must be https or an address of this machine, of ECS or of EKS, so that a variable alone cannot
// send the token elsewhere.
absl::StatusOr<std::optional<S3Credentials>> ContainerCredentials(const RoleQuestion& question);

// Asks the instance metadata service, version 2, at AWS_EC2_METADATA_SERVICE_ENDPOINT, unless
// AWS_EC2_METADATA_DISABLED is true. Also returns nothing if no such service gives a token within
// two seconds, or if the instance has no role. (A pod is one hop too far away by default, and hosts
// can refuse some users.)
absl::StatusOr<std::optional<S3Credentials>> InstanceCredentials(const RoleQuestion& question);

// Parse what those services answer, which need not be trusted. Return nothing for an answer that
// lacks the key, its secret, its session token or its end, or has characters that no header may
// have.
std::optional<S3Credentials> ReadRoleJson(std::string_view text);
std::optional<S3Credentials> ReadWebIdentityAnswer(std::string_view xml);

// Returns amazonaws.com, or the domain of AWS's regions in China.
std::string_view AwsDomain(std::string_view region);

}  // namespace neurontrace
