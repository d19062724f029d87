"""A made corpus in two languages and the questions to it, the same at each run."""

import random
from collections.abc import Sequence
from typing import Final

CHINESE: Final = tuple(
    # As a list of texts it would fill two pages.
    """
    我们 昨天 今天 明天 上午 晚上 周末 老师 学生 医生 同事 朋友 母亲 父亲 孩子 邻居
    经理 客户 公司 学校 医院 餐厅 图书馆 咖啡馆 火车站 机场 公园 北京 上海 广州 杭州
    成都 讨论 准备 完成 修改 检查 学习 购买 预订 取消 喜欢 忘记 记得 计划 报告 合同
    会议 项目 预算 方案 论文 数据库 服务器 程序 手机 电脑 电影 音乐 小说 茶叶 咖啡 面条
    水果 蔬菜 牛奶 药物 感冒 过敏 锻炼 游泳 爬山 旅行 签证 护照 机票 酒店 房租 装修
    生日 礼物 猫 狗
    """.split()  # noqa: SIM905
)
ENGLISH: Final = tuple(
    """
    yesterday tomorrow morning evening weekend teacher student doctor colleague friend
    mother father child neighbour manager customer company school hospital restaurant
    library station airport park london paris berlin discussed prepared finished
    revised checked learned bought booked cancelled liked forgot remembered plan report
    contract meeting project budget proposal thesis database server program phone
    laptop movie music novel tea coffee noodles fruit vegetables milk medicine cold
    allergy exercise swimming hiking travel visa passport ticket hotel rent renovation
    birthday gift cat dog running bright quiet expensive useful broken early late
    """.split()  # noqa: SIM905
)
TAGS: Final = ("work", "family", "health", "travel", "food", "reading")


def sentences(count: int, *, seed: int, languages: Sequence[Sequence[str]]) -> list[str]:
    """Made sentences of 4 to 40 words; a word is the rarer the later it is in its list."""
    rng = random.Random(seed)
    return [_sentence(rng, rng.choice(languages), length=rng.randint(4, 40)) for _ in range(count)]


def questions(count: int, *, seed: int, languages: Sequence[Sequence[str]]) -> list[str]:
    """Two to five words of the same kind."""
    rng = random.Random(seed)
    return [_sentence(rng, rng.choice(languages), length=rng.randint(2, 5)) for _ in range(count)]


def _sentence(rng: random.Random, words: Sequence[str], *, length: int) -> str:
    weights = [1 / (place + 3) for place in range(len(words))]
    chosen = rng.choices(words, weights, k=length)
    return ("" if words is CHINESE else " ").join(chosen)
