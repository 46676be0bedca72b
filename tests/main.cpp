// The test program's entry; every *_test.cpp beside and below adds its cases.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

namespace {

// Filters that match no case at all are a mistake in the filter, and not a success.
struct NothingRunFails : doctest::IReporter {
  explicit NothingRunFails(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& run) override {
    if (run.numTestCasesPassingFilters > 0) return;
    std::cerr << "orrery_tests: no test case passes the filters, so nothing was tested\n";
    std::exit(EXIT_FAILURE);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

}  // namespace

REGISTER_LISTENER("nothing run fails", 1, NothingRunFails);
