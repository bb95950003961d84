// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/channel_security.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "lib/base/address.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/access_limits.h"
#include "lib/wire/pem_files.h"

namespace neurontrace {
namespace {

// How often gRPC examines the files of TLS.
constexpr unsigned kRefreshSeconds = 2;

// Sends the token of a file, read again for each call. gRPC asks for call credentials on
// connections with TLS only, so a token never travels in plain text.
class TokenFromFile final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenFromFile(std::string path) : path_(std::move(path)) {}

  // Reading a small local file does not block noticeably; true would start a thread for each call.
  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "token file"; }
  grpc::string DebugString() override { return "the token in " + path_; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    const auto token = ReadTokenFile(path_, limits::kTokenBytesMax);
    if (!token.ok()) {
      return {grpc::StatusCode::UNAUTHENTICATED, std::string(token.status().message())};
    }
    metadata->emplace("authorization", "Bearer " + *token);
    return grpc::Status::OK;
  }

 private:
  const std::string path_;
};

// Returns a provider that reads the files of TLS, and again when they change.
std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> WatchFiles(
    const ChannelSecurity& security) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      security.key, security.cert, security.ca, kRefreshSeconds);
}

// Returns what is missing among the options or contradictory, before a file is read.
absl::Status CheckOptions(const ChannelSecurity& security, const std::string& address,
                          ChannelSide side) {
  if (!security.has_tls()) {
    if (!security.token_file.empty()) {
      return FailedPrecondition(
          "--token-file needs TLS, because a token is never sent in plain text; also pass "
          "--tls-ca");
    }
    // Traffic of the loopback interface is readable by root alone.
    if (security.insecure || IsLoopback(address)) return absl::OkStatus();
    return FailedPrecondition(
        "{} {}; without TLS anyone on the network can read traces and control captures: pass "
        "--tls-ca, --tls-cert and --tls-key (docs/operator/security.md), or --insecure on a "
        "trusted network",
        address,
        side == ChannelSide::kServer ? "can be reached from other machines"
                                     : "is on another machine");
  }
  if (security.insecure)
    return FailedPrecondition("--insecure and --tls-… exclude each other; omit one of them");
  if (security.cert.empty() != security.key.empty()) {
    return FailedPrecondition("--tls-cert and --tls-key must be given together");
  }
  if (security.ca.empty()) {
    return FailedPrecondition(
        "--tls-ca is missing; pass the certificate file of the authority that signs the other "
        "side's certificates");
  }
  if (side == ChannelSide::kServer && security.cert.empty()) {
    return FailedPrecondition("--tls-cert and --tls-key are missing; a server needs both");
  }
  return absl::OkStatus();
}

}  // namespace

void AddSecurityOptions(CLI::App& app, ChannelSecurity& security, ChannelSide side) {
  const bool is_server = side == ChannelSide::kServer;
  const auto add = [&](const char* name, std::string& path, const char* variable,
                       const char* what) { app.add_option(name, path, what)->envname(variable); };
  add("--tls-ca", security.ca, "NEURONTRACE_TLS_CA",
      is_server ? "PEM file of the certificate authorities for agents and operators"
                : "PEM file of the certificate authorities for the aggregator; enables TLS");
  add("--tls-cert", security.cert, "NEURONTRACE_TLS_CERT",
      "PEM file of this program's certificate; all TLS files are reloaded when they change");
  add("--tls-key", security.key, "NEURONTRACE_TLS_KEY",
      "PEM file of the private key of --tls-cert");
  if (!is_server) {
    add("--tls-server-name", security.server_name, "NEURONTRACE_TLS_SERVER_NAME",
        "Name in the aggregator's certificate, if it differs from the host in --aggregator");
    add("--token-file", security.token_file, "NEURONTRACE_TOKEN_FILE",
        "File with a bearer token, used in addition to or instead of a certificate");
  }
  app.add_flag("--insecure", security.insecure,
               "Allow plain text connections with other machines, for trusted networks")
      ->envname("NEURONTRACE_INSECURE");
}

// Options come before files: a contradiction is reported even if no file exists.
absl::Status CheckSecurity(const ChannelSecurity& security, const std::string& address,
                           ChannelSide side) {
  RETURN_IF_ERROR(CheckOptions(security, address, side));
  if (!security.has_tls()) return absl::OkStatus();
  RETURN_IF_ERROR(WithOption("--tls-ca", CheckAuthorityFile(security.ca).status()));
  if (!security.cert.empty()) {
    RETURN_IF_ERROR(WithOption("--tls-cert", CheckCertificateFile(security.cert).status()));
    RETURN_IF_ERROR(WithOption("--tls-key", CheckKeyFile(security.key, security.cert)));
  }
  if (security.token_file.empty()) return absl::OkStatus();
  return WithOption("--token-file",
                    ReadTokenFile(security.token_file, limits::kTokenBytesMax).status());
}

// A file that cannot be examined is skipped, as CheckSecurity reports it.
std::vector<std::string> DescribeOpenSecrets(const ChannelSecurity& security) {
  std::vector<std::string> sentences;
  for (const auto& [path, what] :
       {std::pair(&security.key, "private key"), std::pair(&security.token_file, "token")}) {
    struct stat about = {};
    if (path->empty() || stat(path->c_str(), &about) != 0) continue;
    if ((about.st_mode & (S_IROTH | S_IWOTH)) == 0) continue;
    sentences.push_back(
        fmt::format("every user of this machine may {} the {} in {} (mode {:04o}); run chmod o= {}",
                    (about.st_mode & S_IWOTH) != 0 ? "write" : "read", what, *path,
                    about.st_mode & 07777, *path));
  }
  return sentences;
}

// A client without a certificate of its own authenticates by its token, or not at all.
std::shared_ptr<grpc::ChannelCredentials> MakeClientCredentials(const ChannelSecurity& security) {
  if (!security.has_tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(WatchFiles(security));
  options.watch_root_certs();
  if (!security.cert.empty()) options.watch_identity_key_cert_pairs();
  // The experimental API is the only one of gRPC 1.51 that reloads files.
  auto tls = grpc::experimental::TlsCredentials(options);
  if (security.token_file.empty()) return tls;
  return grpc::CompositeChannelCredentials(
      tls,
      grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenFromFile>(security.token_file)));
}

std::vector<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ChannelSecurity& security,
    std::span<const std::shared_ptr<grpc::AuthMetadataProcessor>> guards, bool takes_tokens) {
  if (!security.has_tls()) return {grpc::InsecureServerCredentials()};
  // One provider for all guards: each provider has a thread.
  const auto files = WatchFiles(security);
  std::vector<std::shared_ptr<grpc::ServerCredentials>> all;
  for (const auto& guard : guards) {
    grpc::experimental::TlsServerCredentialsOptions options(files);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(takes_tokens
                                      ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    all.push_back(grpc::experimental::TlsServerCredentials(options));
    if (guard != nullptr) all.back()->SetAuthMetadataProcessor(guard);
  }
  return all;
}

}  // namespace neurontrace
