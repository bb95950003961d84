// SPDX-License-Identifier: Apache-2.0
#include "annotate/name_table.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

namespace neurontrace::annotate {
namespace {

class NameTableTest : public ::testing::Test {
 protected:
  static std::string Text(const NamedDomain* domain) { return {domain->name, domain->bytes}; }
  std::string Category(const NamedDomain& domain, uint32_t category) {
    const CategoryName name = names_->FindCategory(domain, category);
    return {name.text == nullptr ? "" : name.text, name.bytes};
  }
  // The table never frees a text, as NVTX keeps it for the process.
  const RegisteredText* Register(const char* text) {
    texts_.emplace_back(const_cast<RegisteredText*>(names_->AddRegistered(text)), &free);
    return texts_.back().get();
  }
  const std::unique_ptr<NameTable> names_ = std::make_unique<NameTable>();

 private:
  std::vector<std::unique_ptr<RegisteredText, void (*)(void*)>> texts_;
};

TEST_F(NameTableTest, DomainsAreKnownByTheirNames) {
  const NamedDomain* const train = names_->AddDomain("train");
  EXPECT_EQ(names_->AddDomain(L"train"), train);
  EXPECT_NE(names_->AddDomain("io"), train);
  EXPECT_EQ(Text(names_->FindDomain(train)), "train");
  EXPECT_NE(train->index, 0);
}

TEST_F(NameTableTest, AnInvalidHandleIsTheDefaultDomain) {
  const NamedDomain* const train = names_->AddDomain("train");
  int other = 0;
  for (const void* handle : {static_cast<const void*>(nullptr), static_cast<const void*>(&other),
                             static_cast<const void*>(&train->bytes)}) {
    EXPECT_EQ(names_->FindDomain(handle)->index, 0);
  }
}

TEST_F(NameTableTest, FurtherDomainsAreOne) {
  for (uint32_t i = 0; i < kAnnotationDomainsMax - 2; ++i) {
    EXPECT_EQ(names_->AddDomain(std::to_string(i).c_str())->index, i + 1);
  }
  const NamedDomain* const other = names_->AddDomain("one more");
  EXPECT_EQ(Text(other), NameTable::kOtherDomain);
  EXPECT_EQ(names_->AddDomain("and another"), other);
  EXPECT_EQ(names_->AddDomain("0")->index, 1) << "known ones stay known";
}

TEST_F(NameTableTest, CategoriesBelongToTheirDomain) {
  const NamedDomain& train = *names_->AddDomain("train");
  const NamedDomain& fallback = *names_->FindDomain(nullptr);
  names_->AddCategory(train, 7, "phase");
  names_->AddCategory(fallback, 7, L"\u00fcber");
  EXPECT_EQ(Category(train, 7), "phase");
  EXPECT_EQ(Category(fallback, 7),
            "\xc3\xbc"
            "ber");
  EXPECT_EQ(Category(train, 8), "");
  EXPECT_EQ(Category(train, 0), "");
  names_->AddCategory(train, 7, "renamed");
  EXPECT_EQ(Category(train, 7), "phase") << "the first name stays";
}

TEST_F(NameTableTest, CategoriesBeyondTheLimitHaveNoName) {
  const NamedDomain& domain = *names_->FindDomain(nullptr);
  for (uint32_t i = 1; i <= kAnnotationCategoriesMax + 1; ++i) {
    names_->AddCategory(domain, i, std::to_string(i).c_str());
  }
  EXPECT_EQ(Category(domain, 1), "1");
  EXPECT_EQ(Category(domain, kAnnotationCategoriesMax), "1024");
  EXPECT_EQ(Category(domain, kAnnotationCategoriesMax + 1), "");
}

TEST_F(NameTableTest, RegisteredTextsAreCopiesAndCut) {
  std::string text(kAnnotationMessageBytesMax + 1, 'x');
  const RegisteredText* const registered = Register(text.c_str());
  text.assign(text.size(), 'y');
  EXPECT_EQ(std::string(registered->text, registered->bytes),
            std::string(kAnnotationMessageBytesMax, 'x'));
  EXPECT_TRUE(registered->is_cut);
  EXPECT_FALSE(Register("short")->is_cut);
  EXPECT_EQ(Register(nullptr)->bytes, 0u);
}

TEST(CopyTextTest, CutsBetweenCharacters) {
  char to[4];
  bool is_cut = false;
  EXPECT_EQ(CopyText("abc\xc3\xbc", to, 4, &is_cut), 3u);
  EXPECT_TRUE(is_cut);
  is_cut = false;
  EXPECT_EQ(CopyText("ab\xc3\xbc", to, 4, &is_cut), 4u);
  EXPECT_FALSE(is_cut);
  EXPECT_EQ(CopyText("\x80\x80\x80\x80\x80", to, 4, &is_cut), 4u) << "what is not UTF-8 is kept";
  EXPECT_EQ(CopyText(L"a\U0001f600", to, 4, &is_cut), 1u);
}

TEST(CopyTextTest, WideTextBecomesUtf8) {
  char to[16];
  bool is_cut = false;
  const uint32_t bytes = CopyText(L"a\u00e9\u20ac\U0001f600", to, sizeof to, &is_cut);
  EXPECT_EQ(std::string(to, bytes), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  const wchar_t invalid[] = {static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x7fffffff), 0};
  EXPECT_EQ(std::string(to, CopyText(invalid, to, sizeof to, &is_cut)), "??");
  EXPECT_FALSE(is_cut);
}

}  // namespace
}  // namespace neurontrace::annotate
