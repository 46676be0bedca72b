// Chapter 1. How the message of an error is put together.
//
// Serves: core/tensor.h
#include "core/error.h"

#include <sstream>

namespace orrery {

Error::Error(std::string_view operation, std::string_view rule, std::string_view details)
    : std::runtime_error(std::string(operation) + ": " + std::string(rule) + std::string(details)), rule_(rule) {}

MessagePart::MessagePart(const char* text)
    : value_(text), write_([](std::ostream& out, const void* part) { out << static_cast<const char*>(part); }) {}

void fail_with(std::string_view operation, std::initializer_list<MessagePart> parts) {
  std::ostringstream rule;
  for (const MessagePart& part : parts) rule << part;
  throw Error(operation, rule.str());
}

}  // namespace orrery
