// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Certificates for tests, made in memory and written to a directory that goes with the object. One
// thread.
namespace neurontrace {

class TestCertificates {
 public:
  struct CertificateSpec {
    std::string common_name = "test";
    std::vector<std::string> names;  // "DNS:localhost", "URI:neurontrace:agent", "IP:127.0.0.1"
    int64_t valid_from_s = -3'600;   // from now
    int64_t valid_until_s = 3'600;
  };

  // An authority, whose certificate is at ca().
  TestCertificates();
  ~TestCertificates();
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  std::string ca() const { return PathOf("ca.pem"); }
  // Writes NAME.pem and NAME.key, each by a rename, signed by the authority.
  void Issue(const std::string& name, const CertificateSpec& spec);
  std::string cert(const std::string& name) const { return PathOf(name + ".pem"); }
  std::string key(const std::string& name) const { return PathOf(name + ".key"); }
  // Writes a file of any text by a rename; returns its path.
  std::string Write(const std::string& name, const std::string& text) const;
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

 private:
  struct Authority;
  std::string directory_;
  std::unique_ptr<Authority> authority_;
};

}  // namespace neurontrace
