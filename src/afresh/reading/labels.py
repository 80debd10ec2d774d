"""The encoding labels of the WHATWG Encoding Standard, and nothing else: no other name selects code.

Each line is a Python codec, and behind it the labels that stand for it. The standard's `replacement` labels
(iso-2022-kr and its kin) are left out: what carries one is read as UTF-8, so that a change in it is still seen.
"""

UTF_8, UTF_16_LE, UTF_16_BE, USER_DEFINED = "utf-8", "utf-16-le", "utf-16-be", "x-user-defined"

_TABLE = """
utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
cp866 866 csibm866 ibm866
iso8859-2 csisolatin2 iso-8859-2 iso-ir-101 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso8859-3 csisolatin3 iso-8859-3 iso-ir-109 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso8859-4 csisolatin4 iso-8859-4 iso-ir-110 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso8859-5 csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso88595 iso_8859-5 iso_8859-5:1988
iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i
iso8859-6 iso-ir-127 iso88596 iso_8859-6 iso_8859-6:1987
iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso88597 iso_8859-7 iso_8859-7:1987
iso8859-7 sun_eu_greek
iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso88598 iso_8859-8
iso8859-8 iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical
iso8859-10 csisolatin6 iso-8859-10 iso-ir-157 iso885910 l6 latin6
iso8859-13 iso-8859-13 iso885913
iso8859-14 iso-8859-14 iso885914
iso8859-15 csisolatin9 iso-8859-15 iso885915 iso_8859-15 l9
iso8859-16 iso-8859-16
koi8-r cskoi8r koi koi8 koi8_r
koi8-u koi8-ru
mac-roman csmacintosh mac macintosh x-mac-roman
cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
cp1250 windows-1250 x-cp1250
cp1251 windows-1251 x-cp1251
cp1252 ansi_x3.4-1968 ascii cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1
cp1252 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252
cp1253 windows-1253 x-cp1253
cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254
cp1255 windows-1255 x-cp1255
cp1256 windows-1256 x-cp1256
cp1257 windows-1257 x-cp1257
cp1258 windows-1258 x-cp1258
mac-cyrillic x-mac-cyrillic x-mac-ukrainian
gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk
big5hkscs big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp cseucpkdfmtjapanese x-euc-jp
iso-2022-jp csiso2022jp
cp932 csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
cp949 cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16-be unicodefffe utf-16be
utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
x-user-defined
"""
# Python's own spellings of codecs; all the other codecs' names are labels too.
_NO_LABELS = frozenset(
    {"iso8859-16", "mac-roman", "cp874", "mac-cyrillic", "big5hkscs", "cp932", "cp949", "utf-16-be", "utf-16-le"}
)
# Those in which one character may take several bytes, or a byte may change what the next ones mean.
MULTIBYTE = frozenset({"gb18030", "big5hkscs", "euc-jp", "iso-2022-jp", "cp932", "cp949"})


def _labels() -> dict[str, str]:
    found = {}
    for line in _TABLE.strip().split("\n"):
        codec, *labels = line.split()
        for label in labels if codec in _NO_LABELS else (*labels, codec):
            found[label] = codec
    return found


CODECS = _labels()  # by label, in lower case
