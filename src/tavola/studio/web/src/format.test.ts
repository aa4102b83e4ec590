import { describe, expect, it } from "vitest";
import {
  addAmounts,
  formatAgo,
  formatAxisMoney,
  formatBytes,
  formatCount,
  formatDateTime,
  formatExactDateTime,
  formatLatency,
  formatMoney,
  formatMoneyRange,
  formatNumber,
  formatPercent,
  formatSeconds,
  parseIso,
  parseTypedTime,
  subtractAmounts,
} from "./format";

describe("numbers", () => {
  it("groups digits and rounds to two decimals", () => {
    expect(formatNumber(12_345.678)).toBe("12,345.68");
    expect(formatNumber(0)).toBe("0");
  });
  it("keeps three significant digits below one", () => {
    expect(formatNumber(0.000_338_125)).toBe("0.000338");
  });
  it("rounds to the given digits first", () => {
    expect(formatNumber(3.14159, 1)).toBe("3.1");
    expect(formatNumber(1234.5678, 0)).toBe("1,235");
  });
  it("has a dash for what is not a number", () => {
    expect(formatNumber(Number.NaN)).toBe("–");
    expect(formatNumber(Number.POSITIVE_INFINITY)).toBe("–");
  });
  it("uses the singular for one", () => {
    expect(formatCount(1, "item")).toBe("1 item");
    expect(formatCount(1500, "index", "indexes")).toBe("1,500 indexes");
  });
  it("counts 1,024 bytes to the kilobyte", () => {
    expect(formatBytes(1023)).toBe("1,023 B");
    expect(formatBytes(1024)).toBe("1 KB");
    expect(formatBytes(400 * 1024)).toBe("400 KB");
    expect(formatBytes(1.5 * 1024 ** 3)).toBe("1.5 GB");
  });
  it("never rounds a share to nothing", () => {
    expect(formatPercent(0)).toBe("0%");
    expect(formatPercent(0.0001)).toBe("<0.1%");
    expect(formatPercent(0.0625)).toBe("6.3%");
    expect(formatPercent(0.62)).toBe("62%");
    expect(formatPercent(0.9953)).toBe(">99%");
    expect(formatPercent(1)).toBe("100%");
  });
  it("chooses the unit of a latency", () => {
    expect(formatLatency(0.25)).toBe("250 µs");
    expect(formatLatency(12.5)).toBe("12.5 ms");
    expect(formatLatency(321.43)).toBe("321 ms");
    expect(formatLatency(2500)).toBe("2.5 s");
    expect(formatLatency(0)).toBe("0 ms");
    expect(formatLatency(null)).toBe("–");
  });
  it("writes whole hours and minutes", () => {
    expect([90, 300, 7200].map(formatSeconds)).toEqual(["90 s", "5 min", "2 h"]);
  });
});

describe("money", () => {
  it("shows cents", () => {
    expect(formatMoney("1234567.891")).toBe("$1,234,567.89");
    expect(formatMoney("0")).toBe("$0.00");
    expect(formatMoney("-12.5")).toBe("−$12.50");
  });
  it("rounds halves to even, as the command line does", () => {
    expect(formatMoney("0.125")).toBe("$0.12");
    expect(formatMoney("0.135")).toBe("$0.14");
  });
  it("does not show a price as nothing", () => {
    expect(formatMoney("0.000338125")).toBe("< $0.01");
    expect(formatMoney("1.5E-7")).toBe("< $0.01");
    expect(formatMoney("0E-10")).toBe("$0.00");
  });
  it("joins a range only if its ends differ", () => {
    expect(formatMoneyRange("0.0625", "0.0624")).toBe("$0.06");
    expect(formatMoneyRange("0.06", "1.25")).toBe("$0.06–$1.25");
  });
  it("adds and subtracts exactly", () => {
    expect(addAmounts("0.1", "0.2")).toBe("0.3000000000");
    expect(addAmounts("-1.5", "1")).toBe("-0.5000000000");
    expect(subtractAmounts("0.3", "0.1")).toBe("0.2000000000");
    expect(subtractAmounts("1", "-0.25")).toBe("1.2500000000");
  });
  it("is short on an axis", () => {
    expect([0.05, 1500, 2_000_000].map(formatAxisMoney)).toEqual(["$0.05", "$1.5K", "$2M"]);
  });
});

describe("times", () => {
  const now = new Date(2026, 10, 18, 9, 30, 0).getTime();

  it("omits the day of today", () => {
    expect(formatDateTime(now - 60_000, now)).toBe("09:29:00");
    expect(formatDateTime(now - 86_400_000, now)).toBe("17 Nov 2026, 09:30:00");
    expect(formatExactDateTime(now + 7, now)).toBe("09:30:00.007");
  });
  it("says how long ago", () => {
    expect(formatAgo(now - 1000, now)).toBe("1 second ago");
    expect(formatAgo(now - 40 * 60_000, now)).toBe("40 minutes ago");
    expect(formatAgo(now - 3 * 86_400_000, now)).toBe("3 days ago");
    expect(formatAgo(now + 5000, now)).toBe("0 seconds ago");
  });
  it("reads ISO 8601 as UTC without a zone, and epoch seconds", () => {
    expect(parseIso("2026-11-16T14:02:31")).toBe(Date.UTC(2026, 10, 16, 14, 2, 31));
    expect(parseIso("2026-11-16T14:02:31+01:00")).toBe(Date.UTC(2026, 10, 16, 13, 2, 31));
    expect(parseIso("1763301751.5")).toBe(1_763_301_751_500);
    expect(parseIso("rubbish")).toBe(0);
    expect(parseIso(null)).toBe(0);
  });
  it("reads what people type", () => {
    expect(parseTypedTime("10m", now)).toBe(now - 600_000);
    expect(parseTypedTime("1.5 h ago", now)).toBe(now - 5_400_000);
    expect(parseTypedTime("09:15", now)).toBe(now - 15 * 60_000);
    expect(parseTypedTime("2026-11-18 08:30", now)).toBe(now - 3_600_000);
  });
  it("takes a later time of day as yesterday's", () => {
    expect(parseTypedTime("23:50", now)).toBe(new Date(2026, 10, 17, 23, 50).getTime());
  });
  it("rejects what is not a time", () => {
    for (const text of ["", "soon", "25:00", "12:61", "10 weeks"]) expect(parseTypedTime(text, now)).toBeNull();
  });
});
