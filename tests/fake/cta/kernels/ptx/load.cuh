// Stands in for the header of this name: what kernels take of it is in tests/fake/cta/text.hpp, or with the test that includes them.
#pragma once
