"""Words that stand in nearly every text and question and tell nothing about either.

Negations (not, no, 不, 没有) are no stop words, or 喜欢 and 不喜欢 would be the same. Neither is a
word that is a name as well: May is a month, US a country.
"""

from typing import Final

_ENGLISH: Final = """
a an the this that these those some any such each both other another
i me my mine myself we our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves
someone something anyone anything
am is are was were be been being do does did doing done have has had having
will would shall should can could might must ought
what which who whom whose when where why how
and or but if so as than then because while whether though although
of at by for from in into on onto to with about between through during upon per via
there here also just very too quite rather really ever even still only
please tell yes ok okay
"""

_CHINESE: Final = """
的 地 得 了 着 过 们 所 之 其 者 个 些
吗 呢 吧 啊 呀 哦 嗯 嘛 啦 哇 哎 哈 喔 咯
我 你 您 他 她 它 我们 咱们 你们 他们 她们 它们 自己 大家 人家
这 那 此 该 这个 那个 这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 这种 那种 这是
什么 怎么 怎样 怎么样 怎么办 如何 为什么 为何 为啥 啥 咋
谁 谁的 哪 哪个 哪些 哪里 哪儿 哪种 哪位
何 何时 何地 几 几个 多少 多久 多长 是不是 有没有 是否 能否 可否 时候 的话
是 有 在 会 能 要 可以 可能 应该 能够 就是 还是 只是 正在 已经 将
和 与 及 以及 或 或者 而 而且 并 并且 但 但是 因为 所以 因此 如果 虽然 不过 然后 于是 既然
也 还 又 都 就 才 却 很 太 更 挺 比较 非常 真的 其实
把 被 给 让 使 对 对于 关于 从 到 向 往 于 以 为 为了 由 跟 同 按 按照 根据 通过 里 中
一 一个 一些 一种 一下 一样 有些 有的 有点
请 请问 告诉
"""

ENGLISH_STOP_WORDS: Final = frozenset(_ENGLISH.split())
"""Pronouns, auxiliaries, prepositions, conjunctions and question words, lower case."""

CHINESE_STOP_WORDS: Final = frozenset(_CHINESE.split())
"""The same of Chinese, in simplified characters, as the cutter parts them."""
