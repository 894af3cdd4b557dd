// As much of Arduino as the sketches of ffi/arduino need, for QEMU and the desktop: see core.cpp.
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stddef.h>
#include <stdint.h>

enum { A0, A1, A2, A3 };

int analogRead(int pin); // 0 to 1023, the same numbers everywhere
void delay(unsigned long milliseconds);

class SerialPort {
public:
    void begin(unsigned long) {}
    void print(const char *text);
    void print(int value);
    void println(const char *text);
    void println(float value, int digits);
};
extern SerialPort Serial;

void setup();
void loop();

#endif
