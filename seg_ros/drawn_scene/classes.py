"""Ids of the classes that the scene is made of."""

from seg_ros.labels import CAMVID

(SKY, BUILDING, POLE, ROAD, PAVEMENT, TREE, SIGN, FENCE, CAR, PEDESTRIAN,
 BICYCLIST) = CAMVID.ids
