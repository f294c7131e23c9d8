#pragma once

#include "text.hpp"
