// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

// Who may read a connection, and what its two ends show each other: TLS with certificates of both
// sides, or plain text, which is for one machine. docs/operator/security.md has the whole picture.
namespace neurontrace {

struct ChannelSecurity {
  // PEM files. gRPC looks at them every few seconds, so that rotated ones need no restart;
  // connections that are there stay, new ones are made with what the files hold. All empty: plain
  // text.
  std::string ca;    // whom to trust
  std::string cert;  // what to show: the certificate first, then what leads to the CA
  std::string key;   // of the certificate
  // Of a client:
  std::string server_name;  // in the server's certificate; empty: the host of its address
  std::string token_file;   // a bearer token, shown with every call; read for each
  // Plain text is right also with other machines.
  bool insecure = false;

  bool has_tls() const { return !ca.empty() || !cert.empty() || !key.empty(); }
};

enum class ChannelSide { kClient, kServer };

// --tls-ca, --tls-cert, --tls-key, --insecure; of a client --tls-server-name and --token-file.
void AddSecurityOptions(CLI::App& app, ChannelSecurity& security, ChannelSide side);

// Whether `address` may be spoken to, or listened at, like this: FAILED_PRECONDITION with the way
// out where other machines would read along, an option is missing, a file cannot be read or is none
// of its kind, the key is another certificate's, or a certificate is out of date. Reads the files.
absl::Status CheckSecurity(const ChannelSecurity& security, const std::string& address,
                           ChannelSide side);

// A sentence for each private key or token file that every user of this machine may read or write,
// with the command that closes it. Warns only, and never of a group: Kubernetes mounts secrets with
// mode 0644 unless told otherwise, into containers that have one user.
std::vector<std::string> DescribeOpenSecrets(const ChannelSecurity& security);

// Of a security that CheckSecurity let pass. Each has a thread of gRPC's that looks at the files.
std::shared_ptr<grpc::ChannelCredentials> MakeClientCredentials(const ChannelSecurity& security);
// For each guard one: it judges every call of a connection with TLS; clients without a certificate
// are let through to it where `takes_tokens`, and refused in the handshake where not. All look at
// the files together. Without TLS there is one, and guards have nothing to judge.
std::vector<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ChannelSecurity& security,
    std::span<const std::shared_ptr<grpc::AuthMetadataProcessor>> guards, bool takes_tokens);

}  // namespace neurontrace
