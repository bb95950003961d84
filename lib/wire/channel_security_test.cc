// SPDX-License-Identifier: Apache-2.0
// Real servers and channels on loopback with certificates that are made for the test: who is let
// in, what is shown, and which options and files are refused before a connection is made.
#include "lib/wire/channel_security.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>

#include "lib/trace/access_limits.h"
#include "lib/wire/grpc_channel.h"
#include "lib/wire/pem_files.h"
#include "lib/wire/server_port.h"
#include "lib/wire/test_certificates.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFar[] = "10.0.0.5:9400";
constexpr char kNear[] = "127.0.0.1:9400";

class Service final : public v1::OperatorService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusReply*) override {
    return grpc::Status::OK;
  }
};

// Notes what it is shown, and lets everybody pass.
class Guard final : public grpc::AuthMetadataProcessor {
 public:
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const std::lock_guard lock(mutex_);
    seen_.clear();
    for (const grpc::string_ref& value : context->FindPropertyValues("x509_pem_cert")) {
      pem_.assign(value.data(), value.size());
    }
    for (const char* const key : {":path", "authorization"}) {
      const auto found = metadata.find(key);
      if (found == metadata.end()) continue;
      seen_ +=
          std::string(key) + "=" + std::string(found->second.data(), found->second.size()) + " ";
    }
    for (const char* const property : {"x509_common_name", "peer_dns", "peer_uri"}) {
      for (const grpc::string_ref& value : context->FindPropertyValues(property)) {
        seen_ += std::string(property) + "=" + std::string(value.data(), value.size()) + " ";
      }
    }
    return grpc::Status::OK;
  }
  std::string pem() {
    const std::lock_guard lock(mutex_);
    return pem_;
  }
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::string seen_;  // guarded by mutex_
  std::string pem_;   // guarded by mutex_
};

class ChannelSecurityTest : public ::testing::Test {
 protected:
  ChannelSecurityTest() {
    ours_.Issue("server", {.common_name = "server", .names = {"DNS:localhost", "IP:127.0.0.1"}});
    ours_.Issue("alice",
                {.common_name = "alice", .names = {"DNS:alice", "URI:neurontrace:viewer"}});
  }
  ~ChannelSecurityTest() override {
    port_.reset();
    if (server_ != nullptr) server_->Shutdown();
  }

  static ChannelSecurity Of(const TestCertificates& certificates, const std::string& name) {
    return {
        .ca = certificates.ca(), .cert = certificates.cert(name), .key = certificates.key(name)};
  }
  void Serve(bool takes_tokens) { ServeWith(Of(ours_, "server"), takes_tokens); }
  void ServeWith(const ChannelSecurity& security, bool takes_tokens) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    auto port = ServerPort::Listen({.address = "127.0.0.1:0", .descriptors_max = 1'024});
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
    const std::shared_ptr<grpc::AuthMetadataProcessor> guards[] = {guard_};
    port_->AddTo(builder, MakeServerCredentials(security, guards, takes_tokens));
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_->Start();
  }
  // By its number: c-ares, which gRPC looks names up with, leaks some bytes for each.
  grpc::Status Call(const ChannelSecurity& security, const std::string& host = "127.0.0.1") {
    const auto stub = v1::OperatorService::NewStub(
        MakeChannel(host + ":" + std::to_string(port_->port()), security));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::GetStatusReply reply;
    return stub->GetStatus(&context, {}, &reply);
  }
  // gRPC looks at the files every two seconds and tells nobody, so that it is asked again and
  // again.
  bool EndsUpAs(bool answers, const ChannelSecurity& security) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (Call(security).ok() != answers) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  }
  bool AnswersInTime(const ChannelSecurity& security) { return EndsUpAs(true, security); }
  bool FailsInTime(const ChannelSecurity& security) { return EndsUpAs(false, security); }
  static std::string Problem(const ChannelSecurity& security, const std::string& address,
                             ChannelSide side = ChannelSide::kClient) {
    return std::string(CheckSecurity(security, address, side).message());
  }

  TestCertificates ours_;
  TestCertificates theirs_;
  std::shared_ptr<Guard> guard_ = std::make_shared<Guard>();
  Service service_;
  std::unique_ptr<ServerPort> port_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ChannelSecurityTest, PlainTextIsForThisMachineAlone) {
  EXPECT_EQ(Problem({}, kNear), "");
  EXPECT_THAT(Problem({}, kFar),
              AllOf(StartsWith(kFar), HasSubstr("--tls-ca"), HasSubstr("--insecure")));
  EXPECT_EQ(Problem({.insecure = true}, kFar), "");
}

TEST_F(ChannelSecurityTest, OptionsThatMissOrContradictAnotherAreRefused) {
  const ChannelSecurity good = Of(ours_, "alice");
  EXPECT_EQ(Problem(good, kFar), "");
  EXPECT_THAT(Problem({.token_file = "/x"}, kNear), HasSubstr("never sent in plain text"));
  EXPECT_THAT(Problem({.ca = good.ca, .cert = good.cert}, kFar),
              HasSubstr("must be given together"));
  EXPECT_THAT(Problem({.cert = good.cert, .key = good.key}, kFar),
              HasSubstr("--tls-ca is missing"));
  EXPECT_EQ(Problem({.ca = good.ca}, kFar), "");
  EXPECT_THAT(Problem({.ca = good.ca}, kFar, ChannelSide::kServer), HasSubstr("needs both"));
  EXPECT_THAT(Problem({.ca = good.ca, .insecure = true}, kFar), HasSubstr("exclude each other"));
}

TEST_F(ChannelSecurityTest, FilesThatCannotBeUsedAreNamed) {
  const ChannelSecurity good = Of(ours_, "alice");
  ChannelSecurity bad = good;
  bad.ca = "/none/ca.pem";
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("--tls-ca: /none/ca.pem: no such file"));
  bad.ca = ours_.Write("empty.pem", "");
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("empty.pem has no certificate"));
  bad = good;
  bad.key = ours_.key("server");
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("does not match the certificate"));
  bad.key = ours_.cert("alice");
  EXPECT_THAT(Problem(bad, kFar), AllOf(HasSubstr("--tls-key: "), HasSubstr("has no private key")));
  bad = good;
  bad.cert = "/none/cert.pem";
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("--tls-cert: /none/cert.pem: no such file"));
  bad = good;
  bad.token_file = "/none/token";
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("--token-file: "));
  bad = good;
  bad.key = ours_.Write("large.key", std::string(limits::kPemBytesMax + 1, 'x'));
  EXPECT_THAT(Problem(bad, kFar), HasSubstr("is larger than"));
  ours_.Issue("old", {.valid_from_s = -7'200, .valid_until_s = -60});
  EXPECT_THAT(Problem(Of(ours_, "old"), kFar), HasSubstr("expired at 2"));
  ours_.Issue("early", {.valid_from_s = 600});
  EXPECT_THAT(Problem(Of(ours_, "early"), kFar), HasSubstr("is valid only from 2"));
}

TEST_F(ChannelSecurityTest, ACallShowsItsPathAndTheCertificatesNames) {
  Serve(false);
  const grpc::Status status = Call(Of(ours_, "alice"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(guard_->seen(),
            ":path=/neurontrace.v1.OperatorService/GetStatus x509_common_name=alice "
            "peer_dns=alice peer_uri=neurontrace:viewer ");
  // The page's port finds the same in the certificate itself.
  EXPECT_THAT(IdentitiesOfCertificate(guard_->pem()).value(),
              testing::UnorderedElementsAre("cn:alice", "dns:alice", "uri:neurontrace:viewer"));
  EXPECT_FALSE(IdentitiesOfCertificate("").ok());
}

TEST_F(ChannelSecurityTest, ACallShowsUntilWhenTheCertificateIsValid) {
  Serve(false);
  ASSERT_TRUE(Call(Of(ours_, "alice")).ok());
  const auto end = CertificateEnd(ours_.cert("alice"));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(EndOfCertificate(guard_->pem()).value(), *end);
  EXPECT_FALSE(EndOfCertificate("").ok());
}

TEST_F(ChannelSecurityTest, TheOtherEndsCertificateHasToBeOfTheSameAuthority) {
  theirs_.Issue("mallory", {.names = {"URI:neurontrace:admin"}});
  Serve(false);
  ChannelSecurity mallory = Of(theirs_, "mallory");
  EXPECT_FALSE(Call(mallory).ok()) << "trusts another server";
  mallory.ca = ours_.ca();
  EXPECT_FALSE(Call(mallory).ok()) << "is trusted by nobody";
  EXPECT_FALSE(Call({.ca = ours_.ca()}).ok()) << "shows nothing";
  EXPECT_FALSE(Call({}).ok()) << "speaks plain text";
  EXPECT_EQ(guard_->seen(), "") << "none of these came so far as a call";
}

TEST_F(ChannelSecurityTest, TheServersNameHasToBeInItsCertificate) {
  ours_.Issue("server", {.names = {"DNS:aggregator.neurontrace"}});
  Serve(false);
  ChannelSecurity alice = Of(ours_, "alice");
  EXPECT_THAT(Call(alice).error_message(), HasSubstr("Hostname Verification"));
  alice.server_name = "aggregator.neurontrace";
  const grpc::Status status = Call(alice);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(ChannelSecurityTest, ATokenIsReadForEachCall) {
  Serve(true);
  ChannelSecurity carol{.ca = ours_.ca(), .token_file = ours_.Write("token", "first\n")};
  ASSERT_TRUE(Call(carol).ok());
  EXPECT_THAT(guard_->seen(), HasSubstr("authorization=Bearer first "));
  ours_.Write("token", "second");
  ASSERT_TRUE(Call(carol).ok());
  EXPECT_THAT(guard_->seen(), HasSubstr("authorization=Bearer second "));
  ours_.Write("token", "\n");
  EXPECT_THAT(Call(carol).error_message(), HasSubstr("must contain a token"));
}

TEST_F(ChannelSecurityTest, RotatedCertificatesAreTakenWithoutARestart) {
  Serve(false);
  ChannelSecurity alice = Of(ours_, "alice");
  ASSERT_TRUE(Call(alice).ok());
  // The new certificate has another name, so that a client can tell which of them it meets.
  ours_.Issue("server", {.common_name = "second", .names = {"DNS:rotated.example"}});
  alice.server_name = "rotated.example";
  EXPECT_TRUE(AnswersInTime(alice));
}

TEST_F(ChannelSecurityTest, GrpcTakesTheAuthoritiesBeforeOneThatCannotBeRead) {
  const auto read = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string whole = read(ours_.ca());
  std::string broken = whole;
  broken.replace(broken.find('\n') + 10, 20, "!!!!!!!!!!!!!!!!!!!!");
  ChannelSecurity security = Of(ours_, "server");
  security.ca = ours_.Write("bundle.pem", whole + broken);
  EXPECT_THAT(Problem(security, kFar, ChannelSide::kServer),
              HasSubstr("certificate 2 of " + security.ca + " cannot be read"));
  ServeWith(security, false);
  EXPECT_TRUE(Call(Of(ours_, "alice")).ok());
  ours_.Write("bundle.pem", broken + whole);
  EXPECT_TRUE(FailsInTime(Of(ours_, "alice")));
}

TEST_F(ChannelSecurityTest, ABadNewCertificateIsOutOfForceOnceThereIsAGoodOne) {
  Serve(false);
  ours_.Write("server.pem", "no certificate");
  EXPECT_TRUE(FailsInTime(Of(ours_, "alice")));
  ours_.Issue("server", {.names = {"IP:127.0.0.1"}});
  EXPECT_TRUE(AnswersInTime(Of(ours_, "alice")));
}

}  // namespace
}  // namespace neurontrace
