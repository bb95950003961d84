// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/token_review.h"

#include <gtest/gtest.h>

#include <string>

#include "aggregator/access/token_test_support.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

constexpr char kOurs[] = "neurontrace";

std::optional<std::string> Authenticate(const std::string& status) {
  const auto who = ReadTokenReview(R"({"kind":"TokenReview","status":)" + status + "}", kOurs);
  EXPECT_TRUE(who.ok()) << who.status();
  return who.ok() ? *who : std::nullopt;
}

// Both as kube-apiserver 1.36.3 wrote them, without its notes on who wrote the fields.
TEST(TokenReviewTest, ParsesRealServerReply) {
  EXPECT_EQ(Authenticate(R"({
  "authenticated": true,
  "user": {
   "username": "system:serviceaccount:team-a:ci",
   "uid": "7a38cba6-078a-4cdb-9a41-cf8dfbb5a3f4",
   "groups": [
    "system:serviceaccounts",
    "system:serviceaccounts:team-a",
    "system:authenticated"
   ],
   "extra": {
    "authentication.kubernetes.io/credential-id": [
     "JTI=b63fefe3-12d0-4987-9ff5-e2115909f9f8"
    ]
   }
  },
  "audiences": [
   "neurontrace"
  ]
 })"),
            "team-a/ci");
  EXPECT_EQ(Authenticate(R"({"user": {}, "error": "invalid bearer token"})"), std::nullopt);
}

TEST(TokenReviewTest, ServerDecides) {
  const std::string user = R"("user":{"username":"system:serviceaccount:train:watcher"})";
  EXPECT_EQ(Authenticate(R"({"authenticated":true,"audiences":["a","neurontrace"],)" + user + "}"),
            "train/watcher");
  EXPECT_EQ(Authenticate(R"({"authenticated":false,"audiences":["neurontrace"],)" + user + "}"),
            std::nullopt);
  EXPECT_EQ(Authenticate(R"({"audiences":["neurontrace"],)" + user + "}"), std::nullopt);
  EXPECT_EQ(Authenticate(R"({"authenticated":"true","audiences":["neurontrace"],)" + user + "}"),
            std::nullopt);
  EXPECT_EQ(Authenticate(R"({"authenticated":true,"audiences":["other"],)" + user + "}"),
            std::nullopt);
  EXPECT_EQ(Authenticate(R"({"authenticated":true,)" + user + "}"), std::nullopt)
      << "the server does not support audiences";
  EXPECT_EQ(Authenticate(R"({"authenticated":true,"audiences":["neurontrace"]})"), std::nullopt);
  EXPECT_EQ(Authenticate(R"({"error":"invalid bearer token"})"), std::nullopt);
}

TEST(TokenReviewTest, OnlyServiceAccountsAreAuthenticated) {
  EXPECT_EQ(ServiceAccountOfUser("system:serviceaccount:a-b:c.d"), "a-b/c.d");
  for (const char* const user :
       {"", "alice", "system:admin", "system:serviceaccount:", "system:serviceaccount:a",
        "system:serviceaccount:a:", "system:serviceaccount::b", "system:serviceaccount:a:b:c",
        "system:serviceaccount:a:b/c", "system:serviceaccount:a:*", "system:serviceaccount:A:b"}) {
    EXPECT_EQ(ServiceAccountOfUser(user), std::nullopt) << user;
  }
  EXPECT_EQ(ServiceAccountOfUser("system:serviceaccount:a:" + std::string(300, 'b')), std::nullopt);
}

TEST(TokenReviewTest, InvalidReplyIsError) {
  for (const char* const answer :
       {"", "{", "[]", "null", "<html>", R"({"kind":"Status","status":"Failure"})",
        R"({"kind":"TokenReview"})", R"({"kind":"TokenReview","status":"x"})",
        R"({"status":{"authenticated":true}})", R"({"kind":"TokenReview","status":{}} x)"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadTokenReview(answer, kOurs).status())) << answer;
  }
  EXPECT_FALSE(ReadTokenReview(std::string(limits::kTokenReviewBytesMax + 1, ' '), kOurs).ok());
  EXPECT_FALSE(ReadTokenReview(std::string(10'000, '['), kOurs).ok());
}

TEST(TokenReviewTest, TheQuestionHoldsTheTokenAndTheAudience) {
  EXPECT_EQ(TokenReviewRequest("a\"b", kOurs),
            R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",)"
            R"("spec":{"token":"a\"b","audiences":["neurontrace"]}})");
}

TEST(TokenReviewTest, ReadsTokenSubjectAndExpiry) {
  const auto claims = ReadTokenClaims(TestToken("train", "watcher", 1'700'000'000), kOurs);
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->service_account, "train/watcher");
  EXPECT_EQ(claims->expires_realtime_ns, 1'700'000'000'000'000'000u);
  EXPECT_TRUE(claims->is_for_audience);
  const std::string subject = R"("sub":"system:serviceaccount:a:b")";
  EXPECT_TRUE(ReadTokenClaims(TestToken(R"({"aud":"neurontrace",)" + subject + "}"), kOurs)
                  ->is_for_audience);
  EXPECT_FALSE(
      ReadTokenClaims(TestToken(R"({"aud":["x"],)" + subject + "}"), kOurs)->is_for_audience);
  EXPECT_FALSE(ReadTokenClaims(TestToken("{" + subject + "}"), kOurs)->is_for_audience);
  EXPECT_EQ(ReadTokenClaims(TestToken("{" + subject + "}"), kOurs)->expires_realtime_ns,
            UINT64_MAX);
  EXPECT_EQ(ReadTokenClaims(TestToken(R"({"exp":-1,)" + subject + "}"), kOurs)->expires_realtime_ns,
            0u);
  EXPECT_EQ(ReadTokenClaims(TestToken(R"({"exp":18446744073709551615,)" + subject + "}"), kOurs)
                ->expires_realtime_ns,
            UINT64_MAX);
}

TEST(TokenReviewTest, OtherTokensClaimNothing) {
  for (const std::string& token :
       {std::string(), std::string("a.b"), std::string("a.b.c"), std::string("a.b.c.d"),
        std::string(".."), std::string("a.!!.c"), TestToken("x"), TestToken("{}"),
        TestToken(R"({"sub":1})"), TestToken(R"({"sub":"alice"})")}) {
    EXPECT_FALSE(ReadTokenClaims(token, kOurs)) << token;
  }
}

}  // namespace
}  // namespace neurontrace
