// The board of Arduino.h: sensors that read numbers of a generator, a serial port that is semihosting or standard output.
#include "Arduino.h"
extern "C" {
#include "board.h" // of examples/firmware-c
}

enum { TURNS = 25 };

SerialPort Serial;

int analogRead(int)
{
    static uint32_t state = 1;

    state = state * 1664525u + 1013904223u;
    return (int)(state >> 22);
}

void delay(unsigned long) {}

void SerialPort::print(const char *text) { ::print(text); }

void SerialPort::print(int value)
{
    if (value < 0)
        ::print("-");
    print_value("", (uint32_t)(value < 0 ? -value : value));
}

void SerialPort::println(const char *text)
{
    ::print(text);
    ::print("\n");
}

// Only integers are printed, so that a digit that differs is the library's.
void SerialPort::println(float value, int digits)
{
    float scale = 1.0f;
    char text[16];

    for (int i = 0; i < digits; i++)
        scale *= 10.0f;
    const uint32_t parts = (uint32_t)((value < 0.0f ? -value : value) * scale + 0.5f);
    uint32_t rest = parts % (uint32_t)scale;
    text[digits] = 0;
    for (int i = digits; i-- > 0; rest /= 10)
        text[i] = (char)('0' + rest % 10);
    print_value(value < 0.0f ? "-" : "", parts / (uint32_t)scale);
    ::print(".");
    println(text);
}

int main()
{
    setup();
    for (int turn = 0; turn < TURNS; turn++)
        loop();
    return 0;
}
