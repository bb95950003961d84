// SPDX-License-Identifier: Apache-2.0
// Goal: a server with TLS answers clients with and without a certificate, believes only
// certificates of its authorities, and uses new files for new connections. Method: a real server,
// and clients of Boost.Asio.
#include "lib/web/web_tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <vector>

#include "lib/base/small_file.h"
#include "lib/web/web_server.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

namespace asio = boost::asio;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers with the certificate and the address that a request came with.
class ShowCertificate final : public WebHandler {
 public:
  WebReply Handle(const WebRequest& request) override {
    return {.body = request.peer + "|" + request.authorization + "|" + request.certificate};
  }
};

class WebTlsTest : public ::testing::Test {
 protected:
  WebTlsTest() {
    own_.Issue("server", {.common_name = "server", .names = {"IP:127.0.0.1"}});
    own_.Issue("alice", {.common_name = "alice"});
    foreign_.Issue("mallory", {.common_name = "mallory"});
  }
  WebTls::Files Files(const std::string& name) const {
    return {.ca = own_.ca(), .cert = own_.cert(name), .key = own_.key(name)};
  }
  void Start(const WebServer::Options& options) {
    auto server = WebServer::Start(options, handler_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void StartWithTls() {
    auto tls = WebTls::Read(Files("server"));
    ASSERT_TRUE(tls.ok()) << tls.status();
    Start({.address = "127.0.0.1:0", .tls = *std::move(tls)});
  }
  asio::ip::tcp::endpoint Endpoint() const {
    return {asio::ip::address_v4::loopback(), static_cast<uint16_t>(server_->port())};
  }

  // Asks over TLS, with a certificate if there is one. Returns the answer, or "" if the handshake
  // or the connection fails. Sets `shown_` to the subject of the server's certificate.
  std::string Ask(const TestCertificates* of = nullptr, const std::string& name = "",
                  int version_max = TLS1_3_VERSION) {
    asio::io_context io;
    asio::ssl::context context(asio::ssl::context::tls_client);
    SSL_CTX_set_max_proto_version(context.native_handle(), version_max);
    context.set_verify_mode(asio::ssl::verify_peer);
    context.load_verify_file(own_.ca());
    if (of != nullptr) {
      context.use_certificate_chain_file(of->cert(name));
      context.use_private_key_file(of->key(name), asio::ssl::context::pem);
    }
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    boost::system::error_code error;
    stream.lowest_layer().connect(Endpoint(), error);
    if (!error) stream.handshake(asio::ssl::stream_base::client, error);
    if (error) return "";
    X509* const certificate = SSL_get1_peer_certificate(stream.native_handle());
    char subject[256] = "";
    X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
    X509_free(certificate);
    shown_ = subject;
    const std::string request =
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n";
    asio::write(stream, asio::buffer(request), error);
    std::string answer;
    asio::read(stream, asio::dynamic_buffer(answer), error);
    end_ = error;
    return answer;
  }

  TestCertificates own_;
  TestCertificates foreign_;
  ShowCertificate handler_;
  std::unique_ptr<WebServer> server_;
  std::string shown_;
  boost::system::error_code end_;  // how the last answer ended
};

TEST_F(WebTlsTest, AnswersClientsWithoutACertificate) {
  StartWithTls();
  const std::string answer = Ask();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("ipv4:127.0.0.1:"));
  EXPECT_THAT(answer, EndsWith("|Bearer x|"));
  EXPECT_EQ(end_, asio::error::eof) << "the end is announced, so that nothing can be cut off";
  EXPECT_THAT(shown_, HasSubstr("CN=server"));
}

TEST_F(WebTlsTest, PassesTheVerifiedCertificateOn) {
  StartWithTls();
  const std::string pem = ReadSmallFile(own_.cert("alice"), 1 << 20).value();
  EXPECT_THAT(Ask(&own_, "alice"), HasSubstr(pem));
  EXPECT_THAT(Ask(&own_, "alice", TLS1_2_VERSION), HasSubstr(pem));
}

TEST_F(WebTlsTest, RefusesCertificatesOfOtherAuthoritiesAndOldVersions) {
  StartWithTls();
  EXPECT_EQ(Ask(&foreign_, "mallory"), "");
  EXPECT_EQ(Ask(nullptr, "", TLS1_1_VERSION), "");
  // One thread serves all connections, so both have been counted when a later one is answered.
  EXPECT_THAT(Ask(), HasSubstr("200 OK"));
  EXPECT_EQ(server_->counters().failed_handshakes, 2u);
  EXPECT_EQ(server_->counters().requests, 1u);
}

TEST_F(WebTlsTest, UsesNewFilesForNewConnections) {
  StartWithTls();
  Ask();
  EXPECT_THAT(shown_, HasSubstr("CN=server"));
  own_.Issue("renewed", {.common_name = "renewed", .names = {"IP:127.0.0.1"}});
  auto tls = WebTls::Read(Files("renewed"));
  ASSERT_TRUE(tls.ok()) << tls.status();
  server_->UseTls(*std::move(tls));
  Ask();
  EXPECT_THAT(shown_, HasSubstr("CN=renewed"));
}

TEST_F(WebTlsTest, BadFilesAreNamed) {
  WebTls::Files files = Files("server");
  files.cert = "/nowhere/server.pem";
  EXPECT_THAT(WebTls::Read(files).status().message(), HasSubstr("/nowhere/server.pem"));
  files = Files("server");
  files.key = own_.key("alice");
  EXPECT_THAT(WebTls::Read(files).status().message(), HasSubstr(files.key));
  files = Files("server");
  files.ca = own_.Write("empty.pem", "");
  EXPECT_THAT(WebTls::Read(files).status().message(), HasSubstr("empty.pem"));
}

TEST_F(WebTlsTest, OneAddressLeavesRoomForOthers) {
  Start({.address = "127.0.0.1:0", .connections_max = 8});
  asio::io_context io;
  std::vector<asio::ip::tcp::socket> sockets;
  for (int i = 0; i < 7; ++i) {
    sockets.emplace_back(io);
    sockets.back().connect(Endpoint());
  }
  // The server closes the last one at once, after it has admitted the others.
  char byte = 0;
  boost::system::error_code error;
  sockets.back().read_some(asio::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
  EXPECT_EQ(server_->counters().refused_connections, 1u);
  EXPECT_EQ(server_->counters().connections, 6u);
}

}  // namespace
}  // namespace neurontrace
